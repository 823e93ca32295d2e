-- asset_promise: notes that an asset is promised as a prize, or changes nothing.
-- KEYS      1 asset
-- RETURNS   ok asset_not_found
-- INVARIANT an asset that was promised is never removed
if redis.call('EXISTS', asset_key) == 0 then return 'asset_not_found' end
redis.call('HSET', asset_key, 'prize', '1')
return 'ok'
