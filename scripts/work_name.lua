-- work_name: names games to the leader of one kind of background work. A full store takes the names
-- too: the work is what frees it, and there are no more names than games.
-- FLAGS     allow-oom
-- KEYS      1 games with work
-- ARGV      then the ids of the games
-- CONFIRM   no: every game is looked at once a minute
-- RETURNS   ok
local games_key = KEYS[1]

redis.call('SADD', games_key, unpack(ARGV))
return {'ok'}
