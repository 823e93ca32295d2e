-- friend_index: lists another player in the index of a player by what they are to the player, and
-- nowhere else; or changes nothing. '' takes the other out.
-- KEYS      1 friends  2 incoming_requests  3 blocked
-- ARGV      1 other: other user  2 state: friend, outgoing, incoming, blocked or ''  3 since: since
--           in ms  4 max_friends: most friends, '' for any number  5 max_incoming: most incoming
--           requests  6 max_blocked: most blocked, '' for any
-- RETURNS   ok forbidden
-- INVARIANT others cannot fill a player's index: only the newest of their requests are kept
max_incoming = tonumber(max_incoming)

local is_friend = state == 'friend' or state == 'outgoing'
local function is_full(index_key, max)
  return max ~= '' and redis.call('ZCARD', index_key) >= tonumber(max) and not redis.call('ZSCORE', index_key, other)
end
if is_friend and is_full(friends_key, max_friends) then return {'forbidden'} end
if state == 'blocked' and is_full(blocked_key, max_blocked) then return {'forbidden'} end
if is_friend then
  redis.call('ZADD', friends_key, other, other)
else
  redis.call('ZREM', friends_key, other)
end
if state == 'blocked' then
  redis.call('ZADD', blocked_key, other, other)
else
  redis.call('ZREM', blocked_key, other)
end
if state == 'incoming' then
  redis.call('ZADD', incoming_requests_key, since, other)
  redis.call('ZREMRANGEBYRANK', incoming_requests_key, 0, -max_incoming - 1)
else
  redis.call('ZREM', incoming_requests_key, other)
end
return {'ok'}
