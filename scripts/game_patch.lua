-- game_patch: replaces a game's definition if it is still the version that was read, or changes
-- nothing.
-- KEYS      1 game
-- ARGV      1 doc  2 version_read  3 nonce
-- RETURNS   ok stale game_not_found
-- INVARIANT the version rises by one with every change; a resend of the same call is ok
local values = redis.call('HMGET', game_key, 'ver', 'nonce')
local version, last_nonce = values[1], values[2]
if not version then return {'game_not_found'} end
if last_nonce == nonce then return {'ok'} end
if version ~= version_read then return {'stale'} end
redis.call('HINCRBY', game_key, 'ver', 1)
redis.call('HSET', game_key, 'doc', doc, 'nonce', nonce)
return {'ok'}
