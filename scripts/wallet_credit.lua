-- wallet_credit: mints units into a player's wallet, or changes nothing.
-- USES  clock event money receipt
-- KEYS  1 wallet  2 lines  3 events  4 totals  5 ledger  6 token  7 receipt
-- ARGV  1 publish  2 nonce  3 fingerprint  4 ttl_ms  5 user  6 code  7 decimals that units count in ('' when no token is known)
--       8 units  9 why  10 ref
-- GIVES ok stale token_not_found invalid_amount idempotency_key_reused
-- KEEPS minted == wallets + escrow + house; a player credited has at most 2^53-1 units, held ones included
local wallet, lines, events, totals, journal, token, receipt = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local publish, nonce, fingerprint, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local user, code, decimals, units, why, ref = ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]

local t = redis.call('HMGET', token, 'id', 'decimals', 'name', 'logo', 'asset', 'policy')
if t[1] and t[2] ~= decimals then return {'stale'} end
local again = seen(receipt, fingerprint)
if again then return again end
if not t[1] then return keep(receipt, fingerprint, ttl, {'token_not_found', nonce}) end
if not mintable(wallet, totals, code, units) then return keep(receipt, fingerprint, ttl, {'invalid_amount', nonce}) end

book(totals, journal, code, why, ref, 'm:-' .. units .. ';w:' .. user .. ':' .. units, {'minted', 'wallets'}, {units, units})
local free, held = move(publish, nonce, wallet, lines, events, code, decimals, units, '0', why, ref)
return keep(receipt, fingerprint, ttl, {'ok', nonce, free, held, unpack(t)})
