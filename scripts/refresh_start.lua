-- refresh_start: begins a family of refresh tokens for a player who exists, or changes nothing.
-- INCLUDES  clock int_to_string
-- KEYS      1 family  2 user  3 families: of the user
-- ARGV      1 digest: of the first token  2 game  3 idle_ms: longest idle time in ms  4 life_ms:
--           longest life in ms  5 name: of the family  6 server_key: id of the server key that made
--           it or ''
-- RETURNS   ok user_not_found
-- INVARIANT a family ends when it was idle or lived too long, whichever is first; the list of
--           families misses none; it begins after the player's sessions were ended last
idle_ms, life_ms = tonumber(idle_ms), tonumber(life_ms)

local user = redis.call('HMGET', user_key, 'game', 'ended')
local user_exists, ended_ms = user[1], tonumber(user[2] or '0')
if not user_exists then return {'user_not_found'} end
local now_ms, now = read_clock()
-- Sessions that were ended by a clock that was ahead would end this one too.
local start = ended_ms < now_ms and now or int_to_string(ended_ms + 1)
local ends_text = int_to_string(now_ms + life_ms)
redis.call('HSET', family_key, 'current', digest, 'game', game, 'until', ends_text, 'start', start, 'by', server_key)
local ttl_ms = math.min(idle_ms, life_ms)
redis.call('PEXPIRE', family_key, int_to_string(ttl_ms))
redis.call('ZREMRANGEBYSCORE', families_key, '-inf', now)
redis.call('ZADD', families_key, int_to_string(now_ms + ttl_ms), name)
redis.call('PEXPIRE', families_key, int_to_string(life_ms))
return {'ok', start}
