-- asset_create: puts an asset on sale, or changes nothing. Its id was drawn for this call alone.
-- INCLUDES  clock
-- KEYS      1 asset  2 assets: of the game
-- ARGV      1 asset_id  2 price: of one in units  3 stock: '' for no limit  4 limit: limit per user
--           ('' for none)  5 token  6 decimals  7 name  8 metadata  9 most: most assets of the game
-- RETURNS   ok limit_reached
-- INVARIANT a game has at most as many assets as it may when one is made
most = tonumber(most)

if redis.call('EXISTS', asset_key) == 1 then return 'ok' end
if redis.call('ZCARD', assets_key) >= most then return 'limit_reached' end
local _, now = read_clock()
local version, on_sale, sold = '1', '1', '0'
redis.call('HSET', asset_key, 'live', PACK(asset_live), 'token', token, 'decimals', decimals, 'name', name,
  'meta', metadata, 'created', now)
redis.call('ZADD', assets_key, asset_id, asset_id)
return 'ok'
