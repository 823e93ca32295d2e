-- game_patch: replaces a game's definition if it is still the version that was read, or changes nothing.
-- KEYS  1 game
-- ARGV  1 doc  2 version read  3 nonce
-- GIVES ok stale game_not_found
-- KEEPS the version rises by one with every change; a resend of the same call is ok
local game = KEYS[1]
local doc, version, nonce = ARGV[1], ARGV[2], ARGV[3]

local now = redis.call('HMGET', game, 'ver', 'nonce')
if not now[1] then return {'game_not_found'} end
if now[2] == nonce then return {'ok'} end
if now[1] ~= version then return {'stale'} end
redis.call('HINCRBY', game, 'ver', 1)
redis.call('HSET', game, 'doc', doc, 'nonce', nonce)
return {'ok'}
