-- asset_remove: removes an asset of which nobody has a piece, or changes nothing.
-- FLAGS     allow-oom
-- KEYS      1 asset  2 assets: of the game
-- ARGV      1 asset_id
-- RETURNS   ok asset_not_found forbidden
-- INVARIANT an asset that was sold, or promised as a prize, stays
local fields = redis.call('HMGET', asset_key, 'live', 'prize')
if not fields[1] then return 'asset_not_found' end
UNPACK(fields[1], asset_live: sold)
if sold ~= '0' or fields[2] then return 'forbidden' end
redis.call('UNLINK', asset_key)
redis.call('ZREM', assets_key, asset_id)
return 'ok'
