-- asset_purchase: sells a player so many of an asset, or changes nothing.
-- USES  clock event money receipt
-- KEYS  1 asset  2 wallet  3 lines  4 events  5 inventory  6 totals  7 ledger  8 token that the asset costs  9 receipt
-- ARGV  1 publish  2 nonce  3 fingerprint  4 ttl_ms  5 user  6 asset id  7 game of the player  8 quantity
--       9 price of one that is expected, in units ('' for any)  10 code of the token in KEYS
-- GIVES ok stale asset_not_found price_changed sold_out already_owned invalid_amount insufficient_funds idempotency_key_reused
-- KEEPS minted == wallets + escrow + house; stock + sold changes by patches alone; nobody owns more than the limit that he met
local asset, wallet, lines, events, inventory, totals, journal, token, receipt =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local publish, nonce, fingerprint, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local user, id, game, quantity, expected, code = ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]

local a = redis.call('HMGET', asset, 'game', 'token', 'decimals', 'price', 'on', 'stock', 'limit', 'sold', 'ver', 'name', 'meta', 'created')
local decimals, price, stock, limit = a[3], a[4], a[6], a[7]
-- First of all the caller must know in what the asset is priced: kept answers count in it too.
if a[2] and a[2] ~= code then return {'stale', a[2], decimals} end
local again = seen(receipt, fingerprint)
if again then return again end
local function refuse(word, ...) return keep(receipt, fingerprint, ttl, {word, nonce, ...}) end

if a[1] ~= game or a[5] ~= '1' then return refuse('asset_not_found') end
if expected ~= '' and expected ~= price then return refuse('price_changed', price) end
if stock ~= '' and not covers(stock, quantity) then return refuse('sold_out', stock) end
local had = redis.call('HGET', inventory, id) or '0'
if limit ~= '' and had + quantity > limit + 0 then return refuse('already_owned', had, limit) end
-- A product of doubles is exact up to 2^53 - 1; a larger one, exact or rounded, is at least 2^53. So whatever passes is exact.
local cost = price * quantity
if cost > 9007199254740991 then return refuse('invalid_amount') end
local total = whole(cost)
local purse = redis.call('HMGET', wallet, 'free:' .. code, 'held:' .. code)
local free, held = purse[1] or '0', purse[2] or '0'
if not covers(free, total) then return refuse('insufficient_funds', free, total) end

local delta, postings = negated(total), ''
if total ~= '0' then postings = 'w:' .. user .. ':' .. delta .. ';h:' .. total end
-- What is free gets an entry too, an empty one: its number is the purchase's id.
local ref = 'asset:' .. id
local after = book(totals, journal, code, 'purchase', ref, postings, {'wallets', 'house', 'minted'}, {delta, total, '0'})
local purchase, minted = after[1], after[4]
local owned = whole(had + quantity)
redis.call('HSET', inventory, id, owned)
a[8] = whole(a[8] + quantity)
if stock ~= '' then a[6] = whole(stock - quantity) end
redis.call('HSET', asset, 'sold', a[8], 'stock', a[6])
free, held = move(publish, nonce, wallet, lines, events, code, decimals, delta, '0', 'purchase', ref, 'user.asset',
  '{"assetId":' .. id .. ',"quantity":' .. quantity .. ',"owned":' .. owned .. ',"purchaseId":' .. purchase .. '}')

local t = redis.call('HMGET', token, 'id', 'decimals', 'name', 'logo', 'asset', 'policy')
return keep(receipt, fingerprint, ttl, {'ok', nonce, table.concat({purchase, owned, total, free, held, minted, table.concat(a, '\n'), table.concat(t, '\n')}, '\n')})
