-- game_update_keys: adds one server key to a game or removes one, or changes nothing.
-- INCLUDES  clock
-- KEYS      1 game
-- ARGV      1 added: digest to add or ''  2 removed: digest to remove or ''
-- RETURNS   ok game_not_found forbidden
-- INVARIANT a game has at most 8 server keys; only a change raises the version
if redis.call('EXISTS', game_key) == 0 then return {'game_not_found'} end
local changes = 0
if added ~= '' and redis.call('HEXISTS', game_key, 'key:' .. added) == 0 then
  local count = 0
  for _, field in ipairs(redis.call('HKEYS', game_key)) do
    if string.sub(field, 1, 4) == 'key:' then count = count + 1 end
  end
  if count >= 8 then return {'forbidden'} end
  local _, now = read_clock()
  changes = redis.call('HSET', game_key, 'key:' .. added, now)
end
if removed ~= '' then changes = changes + redis.call('HDEL', game_key, 'key:' .. removed) end
if changes > 0 then redis.call('HINCRBY', game_key, 'ver', 1) end
return {'ok'}
