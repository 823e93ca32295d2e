-- user_create: stores a new player; when the player is there already, changes nothing.
-- USES  clock
-- KEYS  1 user
-- ARGV  1 game  2 kind  3 username  4 avatar or ''
-- GIVES ok
-- KEEPS a player is created once, by whoever comes first
local user = KEYS[1]
local game, kind, username, avatar = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if redis.call('HSETNX', user, 'game', game) == 1 then
  redis.call('HSET', user, 'kind', kind, 'username', username, 'avatar', avatar, 'created', whole(now_ms))
end
return {'ok'}
