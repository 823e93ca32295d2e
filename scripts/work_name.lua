-- work_name: names games to the leader of one kind of background work. A full store takes the names
-- too: the work is what frees it, and there are no more names than games.
-- FLAGS     allow-oom
-- KEYS      1 games_with_work
-- ARGV      then the ids of the games
-- CONFIRM   no: every game is looked at once a minute
-- RETURNS   ok
redis.call('SADD', games_with_work_key, unpack(ARGV))
return {'ok'}
