-- asset_create: puts an asset on sale, or changes nothing. Its id was drawn for this call alone.
-- INCLUDES  clock asset
-- KEYS      1 asset  2 assets of the game
-- ARGV      1 id  2 game  3 token  4 decimals  5 price  6 stock ('' for no limit)  7 limit per
--           user ('' for none)  8 name  9 metadata
-- RETURNS   ok
local asset_key, assets_key = KEYS[1], KEYS[2]
local id, game, token, decimals, price = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local stock, limit, name, metadata = ARGV[6], ARGV[7], ARGV[8], ARGV[9]

if redis.call('EXISTS', asset_key) == 0 then
  redis.call('HSET', asset_key, 'game', game, 'token', token, 'decimals', decimals, 'price', price, 'on', '1',
    'stock', stock, 'limit', limit, 'sold', '0', 'ver', '1', 'name', name, 'meta', metadata, 'created', now_text)
  redis.call('ZADD', assets_key, id, id)
end
return {'ok', unpack(list_asset_values(read_asset(asset_key)))}
