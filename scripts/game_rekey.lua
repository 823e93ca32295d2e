-- game_rekey: adds one server key to a game or drops one, or changes nothing.
-- USES  clock
-- KEYS  1 game
-- ARGV  1 digest to add or ''  2 digest to drop or ''
-- GIVES ok game_not_found forbidden
-- KEEPS a game has at most 8 server keys; only a change raises the version
local game = KEYS[1]
local added, dropped = ARGV[1], ARGV[2]

if redis.call('EXISTS', game) == 0 then return {'game_not_found'} end
local change = 0
if added ~= '' and redis.call('HEXISTS', game, 'key:' .. added) == 0 then
  local held = 0
  for _, field in ipairs(redis.call('HKEYS', game)) do
    if string.sub(field, 1, 4) == 'key:' then held = held + 1 end
  end
  if held >= 8 then return {'forbidden'} end
  change = redis.call('HSET', game, 'key:' .. added, whole(now_ms))
end
if dropped ~= '' then change = change + redis.call('HDEL', game, 'key:' .. dropped) end
if change > 0 then redis.call('HINCRBY', game, 'ver', 1) end
return {'ok'}
