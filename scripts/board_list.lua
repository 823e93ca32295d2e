-- board_list: lists a leaderboard that is about to be made, or changes nothing. The leaderboards of
-- tournaments do not count: the tournaments do.
-- KEYS      1 boards: of the game  2 due  3 boards_of_tournaments
-- ARGV      1 board  2 most: most boards of the game ('' for that of a tournament)  3 due: time at
--           which the leader looks at it, in ms
-- RETURNS   ok limit_reached
-- INVARIANT a game lists at most as many boards as it may have when one is listed; each board of a
--           tournament is among all boards
if redis.call('SISMEMBER', boards_key, board) == 1 then return {'ok'} end
if most == '' then
  redis.call('SADD', boards_of_tournaments_key, board)
elseif redis.call('SCARD', boards_key) - redis.call('SCARD', boards_of_tournaments_key) >= tonumber(most) then
  return {'limit_reached'}
end
redis.call('SADD', boards_key, board)
redis.call('ZADD', due_key, due, board)
return {'ok'}
