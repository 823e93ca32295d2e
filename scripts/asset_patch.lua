-- asset_patch: changes an asset, or changes nothing.
-- INCLUDES  asset
-- KEYS      1 asset
-- ARGV      1 nonce  then pairs of a field (price on stock limit name meta) and its text
-- RETURNS   ok asset_not_found
-- INVARIANT game, token and decimals never change; a resend changes nothing more
local asset_key = KEYS[1]
local nonce = ARGV[1]

local last = redis.call('HMGET', asset_key, 'game', 'patch')
if not last[1] then return {'asset_not_found'} end
if last[2] ~= nonce then
  for i = 2, #ARGV, 2 do redis.call('HSET', asset_key, ARGV[i], ARGV[i + 1]) end
  redis.call('HSET', asset_key, 'patch', nonce)
  redis.call('HINCRBY', asset_key, 'ver', 1)
end
return {'ok', unpack(list_asset_values(read_asset(asset_key)))}
