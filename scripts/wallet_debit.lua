-- wallet_debit: burns units that a player can spend, or changes nothing.
-- INCLUDES  clock amounts balance receipt call_with_receipt
-- KEYS      2 wallet  3 lines  4 totals  5 ledger
-- ARGV      5 user  6 token  7 decimals  8 units  9 reason: escaped  10 ref: escaped
-- LEDGER    always
-- RETURNS   ok replay insufficient_funds idempotency_key_reused
-- INVARIANT minted is what the ledger brought in; what a player can spend is never below zero
local free, held, seq, limited = read_balance(wallet_key, token)
if not has_at_least(free, units) then
  return refuse('insufficient_funds', free)
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
