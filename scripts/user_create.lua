-- user_create: stores a new player; when the player is there already, changes nothing.
-- INCLUDES  clock
-- KEYS      1 user
-- ARGV      1 game  2 kind  3 username  4 avatar: avatar or ''  5 identity_field: field of the
--           identity or ''
-- RETURNS   ok
-- INVARIANT a player is created once, by the first caller
if redis.call('HSETNX', user_key, 'game', game) == 1 then
  local _, now = read_clock()
  redis.call('HSET', user_key, 'kind', kind, 'username', username, 'avatar', avatar, 'created', now)
  if identity_field ~= '' then redis.call('HSET', user_key, identity_field, '1') end
end
return {'ok'}
