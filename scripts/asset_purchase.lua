-- asset_purchase: sells a player so many of an asset, or changes nothing.
-- INCLUDES clock amounts balance receipt
-- KEYS  1 asset 2 wallet 3 lines 4 inventory 5 ledger 6 ledger_base 7 receipt
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl_ms 5 user 6 asset_id 7 quantity 8 expected_price ('' for any) 9 token 10 decimals
-- RETURNS ok replay asset_not_found price_changed sold_out already_owned invalid_amount insufficient_funds idempotency_key_reused
-- INVARIANT stock + sold changes by patches alone; nobody owns more than the limit at the time of the purchase
local asset_key, wallet_key, lines_key, inventory_key, ledger_key, base_key, receipt_key =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local publish, nonce, fingerprint, ttl_ms, user = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local asset_id, quantity, expected, token, decimals = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]

local first = find_receipt(receipt_key, fingerprint)
if first then return first end
local function refuse(...) return save_receipt(receipt_key, fingerprint, ttl_ms, {...}) end

local live = redis.call('HGET', asset_key, 'live')
if not live then return refuse('asset_not_found', nonce) end
local version, on_sale, price, stock, limit, sold = string.match(live, PATTERN(asset_live: version on_sale price stock limit sold))
if on_sale ~= '1' then return refuse('asset_not_found', nonce) end
if expected ~= '' and expected ~= price then return refuse('price_changed', nonce, price) end
if stock ~= '' and not has_at_least(stock, quantity) then return refuse('sold_out', nonce, stock) end
local had = redis.call('HGET', inventory_key, asset_id) or '0'
if limit ~= '' and had + quantity > tonumber(limit) then return refuse('already_owned', nonce, had, limit) end
-- A product of doubles is exact up to 2^53 - 1; a larger one, exact or rounded, is at least 2^53.
local cost = price * quantity
if cost > 9007199254740991 then return refuse('invalid_amount', nonce) end
local total = string.format('%d', cost)
local free, held, seq = read_balance(wallet_key, token)
if not has_at_least(free, total) then return refuse('insufficient_funds', nonce, free, total) end

local _, now = read_clock()
free = subtract_amounts(free, total)
local ref, delta, postings = 'asset:' .. asset_id, '0', ''
if total ~= '0' then
  delta = '-' .. total
  postings = 'w' .. user .. ':' .. delta .. ';h:' .. total
end
-- What is free gets an entry too, an empty one: its number is the purchase's id.
local length = redis.call('RPUSH', ledger_key, now .. '|' .. nonce .. '|' .. token .. '|purchase|' .. ref .. '|' .. postings)
local purchase = string.format('%d', length + (redis.call('GET', base_key) or 0))
local owned = string.format('%d', had + quantity)
redis.call('HSET', inventory_key, asset_id, owned)
sold = string.format('%d', sold + quantity)
if stock ~= '' then stock = string.format('%d', stock - quantity) end
redis.call('HSET', asset_key, 'live', PACK(asset_live))
seq = string.format('%d', seq + 2)
write_balance(publish, wallet_key, lines_key, nonce, now, token, free, held, seq, 'user.asset',
  decimals .. '|' .. delta .. '|' .. free .. '|' .. held .. '|purchase|' .. ref .. '|' .. asset_id .. '|' .. quantity .. '|' .. owned ..
  '|' .. purchase)
return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce, purchase, price, total, owned, free, held})
