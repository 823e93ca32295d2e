-- asset_purchase: sells a player a quantity of an asset, or changes nothing.
-- INCLUDES  clock int_to_string format_time format_decimal negate is_at_least hincrby_many
--           emit_event apply_balance_change post_ledger_entry receipt read_token asset
-- KEYS      1 asset  2 wallet  3 lines  4 events  5 inventory  6 totals  7 ledger  8 token that
--           the asset costs  9 receipt
-- ARGV      1 publish command  2 nonce  3 fingerprint  4 receipt ttl in ms  5 user  6 asset id
--           7 game of the player  8 quantity  9 expected price of one in units ('' for any)
--           10 code of the token in KEYS
-- RETURNS   ok stale replay asset_not_found price_changed sold_out already_owned invalid_amount
--           insufficient_funds idempotency_key_reused
-- INVARIANT minted == wallets + escrow + house; stock + sold changes by patches alone; nobody
--           owns more than the limit at the time of the purchase
local asset_key, wallet_key, lines_key, events_key, inventory_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local totals_key, ledger_key, token_key, receipt_key = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local publish, nonce, fingerprint, receipt_ttl_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local user, id, game, quantity, expected_price, code = ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]

local asset = read_asset(asset_key)
local decimals, price, stock, limit = asset.decimals, asset.price, asset.stock, asset.limit
-- First of all the caller must know in what the asset is priced: stored replies count in it too.
if asset.token and asset.token ~= code then return {'stale', asset.token, decimals} end
local first_reply = find_receipt(receipt_key, fingerprint)
if first_reply then return first_reply end
local function refuse(status, ...)
  return save_receipt(receipt_key, fingerprint, receipt_ttl_ms, {status, nonce, ...})
end

if asset.game ~= game or asset.on ~= '1' then return refuse('asset_not_found') end
if expected_price ~= '' and expected_price ~= price then return refuse('price_changed', price) end
if stock ~= '' and not is_at_least(stock, quantity) then return refuse('sold_out', stock) end
local had = redis.call('HGET', inventory_key, id) or '0'
if limit ~= '' and had + quantity > tonumber(limit) then return refuse('already_owned', had, limit) end
-- A product of doubles is exact up to 2^53 - 1; a larger one, exact or rounded, is at least 2^53.
-- So whatever passes is exact.
local cost = price * quantity
if cost > 9007199254740991 then return refuse('invalid_amount') end
local total = int_to_string(cost)
local balance = redis.call('HGET', wallet_key, 'free:' .. code) or '0'
if not is_at_least(balance, total) then return refuse('insufficient_funds', balance, total) end

local delta, postings = negate(total), ''
if total ~= '0' then postings = 'w:' .. user .. ':' .. delta .. ';h:' .. total end
-- A purchase of what is free is posted too, without postings: the entry's number is the
-- purchase's id.
local ref = 'asset:' .. id
local entry = post_ledger_entry(totals_key, ledger_key, {token = code, reason = 'purchase', ref = ref,
  postings = postings, accounts = {'wallets', 'house', 'minted'}, deltas = {delta, total, '0'}})
local purchase, minted = entry[1], entry[4]
local owned = int_to_string(had + quantity)
redis.call('HSET', inventory_key, id, owned)
asset.sold = int_to_string(asset.sold + quantity)
if stock ~= '' then asset.stock = int_to_string(stock - quantity) end
redis.call('HSET', asset_key, 'sold', asset.sold, 'stock', asset.stock)
local free, held = apply_balance_change(publish, nonce, {wallet = wallet_key, lines = lines_key, events = events_key},
  {token = code, decimals = decimals, free = delta, held = '0', reason = 'purchase', ref = ref},
  {kind = 'user.asset', data = '{"assetId":' .. id .. ',"quantity":' .. quantity .. ',"owned":' .. owned ..
    ',"purchaseId":' .. purchase .. '}'})

local asset_text = table.concat(list_asset_values(asset), '\n')
local token_text = table.concat(read_token(token_key), '\n')
return save_receipt(receipt_key, fingerprint, receipt_ttl_ms, {'ok', nonce,
  table.concat({purchase, owned, total, free, held, minted, asset_text, token_text}, '\n')})
