-- user_end_sessions: ends every session of a player that has begun, or changes nothing; returns
-- when, and the families of refresh tokens that are over.
-- INCLUDES  clock
-- FLAGS     allow-oom
-- KEYS      1 user  2 families of the user
-- RETURNS   ok user_not_found
-- INVARIANT a session that begins later is not ended; a resend ends what began in between
local user_key, families_key = KEYS[1], KEYS[2]

if redis.call('HEXISTS', user_key, 'game') == 0 then return {'user_not_found'} end
local _, now = read_clock()
redis.call('HSET', user_key, 'ended', now)
return {'ok', now, unpack(redis.call('ZRANGE', families_key, 0, 999))}
