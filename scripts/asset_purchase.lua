-- asset_purchase: sells a player a quantity of an asset, or changes nothing.
-- INCLUDES  clock amounts balance receipt call_with_receipt
-- KEYS      2 asset  3 wallet  4 lines  5 inventory  6 ledger  7 ledger_base
-- ARGV      5 user  6 asset_id  7 quantity  8 expected_price: expected price of one in units (''
--           for any)  9 token: that the asset costs ('' when the caller found no asset)
--           10 decimals
-- LEDGER    always
-- RETURNS   ok replay asset_not_found price_changed sold_out already_owned invalid_amount
--           insufficient_funds idempotency_key_reused
-- INVARIANT stock + sold changes by patches alone; nobody owns more than the limit at the time of
--           the purchase
local live = redis.call('HGET', asset_key, 'live')
if not live or token == '' then return refuse('asset_not_found') end
UNPACK(live, asset_live)
if on_sale ~= '1' then return refuse('asset_not_found') end
if expected_price ~= '' and expected_price ~= price then return refuse('price_changed', price) end
if stock ~= '' and not has_at_least(stock, quantity) then return refuse('sold_out', stock) end
local had = redis.call('HGET', inventory_key, asset_id) or '0'
if limit ~= '' and had + quantity > tonumber(limit) then return refuse('already_owned', had, limit) end
-- A product of doubles is exact up to 2^53 - 1; a larger one, exact or rounded, is at least 2^53.
-- So whatever passes is exact.
local cost = price * quantity
if cost > 9007199254740991 then return refuse('invalid_amount') end
local total = string.format('%d', cost)
local free, held, seq, limited = read_balance(wallet_key, token)
if not has_at_least(free, total) then return refuse('insufficient_funds', free, total) end

local _, now = read_clock()
local cause, delta, postings = '|purchase|asset:' .. asset_id .. '|', '0', ''
if total ~= '0' then
  free = subtract_amounts(free, total)
  delta = '-' .. total
  postings = 'w' .. user .. ':' .. delta .. ';h:' .. total
end
-- A purchase of what is free has an entry too, without postings: the entry's number is the
-- purchase's id.
local length = redis.call('RPUSH', ledger_key, now .. '|' .. nonce .. '|' .. token .. cause .. postings)
local purchase = string.format('%d', length + (redis.call('GET', ledger_base_key) or 0))
local owned = string.format('%d', had + quantity)
redis.call('HSET', inventory_key, asset_id, owned)
sold = string.format('%d', sold + quantity)
if stock ~= '' then stock = string.format('%d', stock - quantity) end
redis.call('HSET', asset_key, 'live', PACK(asset_live))
write_balance(publish, wallet_key, lines_key, nonce, now, token, free, held, limited, string.format('%d', seq + 2),
  'user.asset', decimals .. '|' .. delta .. '|' .. free .. '|' .. held .. cause .. asset_id .. '|' .. quantity .. '|' ..
  owned .. '|' .. purchase)
return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce, purchase, price, owned, free, held})
