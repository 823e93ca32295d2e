-- game_create: stores a new game with its first server key, or changes nothing.
-- INCLUDES  clock
-- KEYS      1 game
-- ARGV      1 doc  2 digest: key digest
-- RETURNS   ok stale
-- INVARIANT a game is created once; a resend of the same call is ok
if redis.call('EXISTS', game_key) == 1 then
  if redis.call('HEXISTS', game_key, 'key:' .. digest) == 1 then return {'ok'} end
  return {'stale'}
end
local _, now = read_clock()
redis.call('HSET', game_key, 'doc', doc, 'ver', '1', 'created', now, 'key:' .. digest, now)
return {'ok'}
