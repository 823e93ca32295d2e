-- user_end_sessions: ends every session of a player that has begun, or changes nothing; returns
-- when, and the families of refresh tokens that are over.
-- INCLUDES  clock int_to_string
-- FLAGS     allow-oom
-- KEYS      1 user  2 families: of the user
-- RETURNS   ok user_not_found
-- INVARIANT a session that begins later is not ended; a resend ends what began in between
local user = redis.call('HMGET', user_key, 'game', 'ended')
local user_exists, ended_before_ms = user[1], tonumber(user[2] or '0')
if not user_exists then return {'user_not_found'} end
-- Sessions begin after the last end, also after one by a clock that was ahead.
local ended = int_to_string(math.max(read_clock(), ended_before_ms + 1))
redis.call('HSET', user_key, 'ended', ended)
return {'ok', ended, unpack(redis.call('ZRANGE', families_key, 0, 999))}
