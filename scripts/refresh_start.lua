-- refresh_start: begins a family of refresh tokens.
-- INCLUDES  clock int_to_string
-- KEYS      1 family
-- ARGV      1 digest of the first token  2 game  3 longest idle time in ms  4 longest life in ms
-- RETURNS   ok
-- INVARIANT a family ends when it was idle or lived too long, whichever is first
local family_key = KEYS[1]
local digest, game, idle_ms, life_ms = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local now_ms = read_clock()
redis.call('HSET', family_key, 'current', digest, 'game', game, 'until', int_to_string(now_ms + life_ms))
redis.call('PEXPIRE', family_key, int_to_string(math.min(idle_ms, life_ms)))
return {'ok'}
