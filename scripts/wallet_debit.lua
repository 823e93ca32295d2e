-- wallet_debit: burns units that a player can spend, or changes nothing.
-- INCLUDES  clock amounts balance receipt
-- KEYS      1 wallet  2 lines  3 totals  4 ledger  5 receipt
-- ARGV      1 publish command  2 nonce  3 fingerprint  4 receipt ttl in ms  5 user  6 token
--           7 decimals of the token  8 units  9 reason, escaped  10 ref, escaped
-- LEDGER    always
-- RETURNS   ok replay insufficient_funds idempotency_key_reused
-- INVARIANT minted is what the ledger brought in; what a player can spend is never below zero
local wallet_key, lines_key, totals_key, ledger_key, receipt_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local publish, nonce, fingerprint, ttl_ms, user = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local token, decimals, units, reason, ref = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]

local first = find_receipt(receipt_key, fingerprint)
if first then return first end
local free, held, seq, limited = read_balance(wallet_key, token)
if not has_at_least(free, units) then
  return save_receipt(receipt_key, fingerprint, ttl_ms, {'insufficient_funds', nonce, free})
end

local _, now = read_clock()
local delta, cause = '-' .. units, '|' .. reason .. '|' .. ref
free = subtract_amounts(free, units)
redis.call('HINCRBY', totals_key, 'minted:' .. token, delta)
redis.call('RPUSH', ledger_key,
  now .. '|' .. nonce .. '|' .. token .. cause .. '|m:' .. units .. ';w' .. user .. ':' .. delta)
write_balance(publish, wallet_key, lines_key, nonce, now, token, free, held, limited, string.format('%d', seq + 1),
  'user.balance', decimals .. '|' .. delta .. '|' .. free .. '|' .. held .. cause)
return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce, free, held})
