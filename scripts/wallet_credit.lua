-- wallet_credit: mints units into a player's wallet, or changes nothing.
-- INCLUDES  clock amounts balance mint receipt day_mints
-- KEYS      1 wallet  2 lines  3 totals  4 ledger  5 receipt  then mints by server keys, when one
--           of them credits
-- ARGV      1 publish command  2 nonce  3 fingerprint  4 receipt ttl in ms  5 user  6 token
--           7 decimals of the token  8 units  9 reason, escaped  10 ref, escaped  then the units
--           that the game's server keys may mint in a day, when one of them credits
-- LEDGER    always
-- RETURNS   ok replay invalid_amount limit_reached idempotency_key_reused
-- INVARIANT minted is what the ledger brought in; a player credited has at most 2^53 - 1 units,
--           held ones included; server keys mint no more in a day than they may
local wallet_key, lines_key, totals_key, ledger_key, receipt_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local publish, nonce, fingerprint, ttl_ms, user = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local token, decimals, units, reason, ref = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]

local first = find_receipt(receipt_key, fingerprint)
if first then return first end
local mints_key, mints_of_day = #KEYS > 5 and KEYS[#KEYS], nil
if mints_key then
  mints_of_day = count_day_mints(mints_key, token, units, ARGV[#ARGV])
  if not mints_of_day then return save_receipt(receipt_key, fingerprint, ttl_ms, {'limit_reached', nonce}) end
end
local free, held = mint(publish, wallet_key, lines_key, totals_key, ledger_key, nonce, user, token, decimals, units,
  reason, ref)
if not free then return save_receipt(receipt_key, fingerprint, ttl_ms, {'invalid_amount', nonce}) end
if mints_key then redis.call('HSET', mints_key, token, mints_of_day) end
return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce, free, held})
