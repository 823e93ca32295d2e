-- asset_patch: changes an asset, or changes nothing.
-- KEYS      1 asset
-- ARGV      1 nonce  2 new_on_sale: on sale, 1 or 0  3 new_price: price of one in units
--           4 new_stock: stock ('' for no limit)  5 new_limit: limit per user ('' for none); each
--           of them '=' for no change  then pairs of a field (name meta) and its text
-- RETURNS   ok asset_not_found
-- INVARIANT token and decimals never change; a resend changes nothing more
local fields = redis.call('HMGET', asset_key, 'live', 'patch')
if not fields[1] then return {'asset_not_found'} end
if fields[2] == nonce then return 'ok' end
UNPACK(fields[1], asset_live)
version = string.format('%d', version + 1)
if new_on_sale ~= '=' then on_sale = new_on_sale end
if new_price ~= '=' then price = new_price end
if new_stock ~= '=' then stock = new_stock end
if new_limit ~= '=' then limit = new_limit end
redis.call('HSET', asset_key, 'live', PACK(asset_live), 'patch', nonce)
for i = NEXT_ARG, #ARGV, 2 do redis.call('HSET', asset_key, ARGV[i], ARGV[i + 1]) end
return 'ok'
