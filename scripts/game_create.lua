-- game_create: stores a new game with its first server key, or changes nothing.
-- USES  clock
-- KEYS  1 game
-- ARGV  1 doc  2 key digest
-- GIVES ok stale
-- KEEPS a game is created once; a resend of the same call is ok
local game = KEYS[1]
local doc, digest = ARGV[1], ARGV[2]

if redis.call('EXISTS', game) == 1 then
  if redis.call('HEXISTS', game, 'key:' .. digest) == 1 then return {'ok'} end
  return {'stale'}
end
redis.call('HSET', game, 'doc', doc, 'ver', '1', 'created', whole(now_ms), 'key:' .. digest, whole(now_ms))
return {'ok'}
