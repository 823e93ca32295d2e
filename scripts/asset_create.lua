-- asset_create: puts an asset on sale, or changes nothing. Its id was drawn for this call alone.
-- INCLUDES  clock
-- KEYS      1 asset  2 assets of the game
-- ARGV      1 id  2 price of one in units  3 stock ('' for no limit)  4 limit per user ('' for
--           none)  5 token  6 decimals of the token  7 name  8 metadata  9 most assets of the game
-- RETURNS   ok limit_reached
-- INVARIANT a game has at most as many assets as it may when one is made
local asset_key, assets_key = KEYS[1], KEYS[2]
local id, price, stock, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local token, decimals, name, metadata, most = ARGV[5], ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])

if redis.call('EXISTS', asset_key) == 1 then return 'ok' end
if redis.call('ZCARD', assets_key) >= most then return 'limit_reached' end
local _, now = read_clock()
local version, on_sale, sold = '1', '1', '0'
redis.call('HSET', asset_key, 'live', PACK(asset_live), 'token', token, 'decimals', decimals, 'name', name,
  'meta', metadata, 'created', now)
redis.call('ZADD', assets_key, id, id)
return 'ok'
