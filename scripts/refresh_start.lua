-- refresh_start: begins a family of refresh tokens.
-- USES  clock
-- KEYS  1 family
-- ARGV  1 digest of the first token  2 game  3 idle ms  4 longest ms
-- GIVES ok
-- KEEPS a family ends when it was idle or lived too long, whichever is first
local family = KEYS[1]
local digest, game, idle, longest = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

redis.call('HSET', family, 'current', digest, 'game', game, 'until', whole(now_ms + longest))
redis.call('PEXPIRE', family, whole(math.min(idle, longest)))
return {'ok'}
