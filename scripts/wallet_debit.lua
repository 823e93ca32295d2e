-- wallet_debit: burns units that a player can spend, or changes nothing.
-- INCLUDES clock amounts balance receipt
-- KEYS  1 wallet 2 lines 3 totals 4 ledger 5 receipt
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl_ms 5 user 6 token 7 decimals 8 units 9 reason 10 ref
-- RETURNS ok replay insufficient_funds idempotency_key_reused
-- INVARIANT what a player can spend is never below zero; minted is exact
local wallet_key, lines_key, totals_key, ledger_key, receipt_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local publish, nonce, fingerprint, ttl_ms, user = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local token, decimals, units, reason, ref = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]

local first = find_receipt(receipt_key, fingerprint)
if first then return first end
local free, held, seq = read_balance(wallet_key, token)
if not has_at_least(free, units) then
  return save_receipt(receipt_key, fingerprint, ttl_ms, {'insufficient_funds', nonce, free})
end

local _, now = read_clock()
free = subtract_amounts(free, units)
redis.call('HINCRBY', totals_key, 'minted:' .. token, '-' .. units)
redis.call('RPUSH', ledger_key,
  now .. '|' .. nonce .. '|' .. token .. '|' .. reason .. '|' .. ref .. '|m:' .. units .. ';w' .. user .. ':-' .. units)
write_balance(publish, wallet_key, lines_key, nonce, now, token, free, held, string.format('%d', seq + 1), 'user.balance',
  decimals .. '|-' .. units .. '|' .. free .. '|' .. held .. '|' .. reason .. '|' .. ref)
return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce, free, held})
