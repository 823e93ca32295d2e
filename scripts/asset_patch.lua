-- asset_patch: changes an asset, or changes nothing.
-- KEYS  1 asset
-- ARGV  1 nonce  then pairs of a field (price on stock limit name meta) and its text
-- GIVES ok asset_not_found
-- KEEPS game, token and decimals never change; a resend changes nothing more
local asset = KEYS[1]
local nonce = ARGV[1]

local last = redis.call('HMGET', asset, 'game', 'patch')
if not last[1] then return {'asset_not_found'} end
if last[2] ~= nonce then
  for i = 2, #ARGV, 2 do redis.call('HSET', asset, ARGV[i], ARGV[i + 1]) end
  redis.call('HSET', asset, 'patch', nonce)
  redis.call('HINCRBY', asset, 'ver', 1)
end
return {'ok', unpack(redis.call('HMGET', asset, 'game', 'token', 'decimals', 'price', 'on', 'stock', 'limit', 'sold', 'ver', 'name', 'meta', 'created'))}
