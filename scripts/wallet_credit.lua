-- wallet_credit: mints units into a player's wallet, or changes nothing.
-- INCLUDES  clock amounts balance mint receipt call_with_receipt day_mints
-- KEYS      2 wallet  3 lines  4 totals  5 ledger  then mints by server keys, when one of them
--           credits
-- ARGV      5 user  6 token  7 decimals  8 units  9 reason: escaped  10 ref: escaped  then the
--           units that the game's server keys may mint in a day, when one of them credits
-- LEDGER    always
-- RETURNS   ok replay invalid_amount limit_reached idempotency_key_reused
-- INVARIANT minted is what the ledger brought in; a player credited has at most 2^53 - 1 units,
--           held ones included; server keys mint no more in a day than they may
local mints_key, mints_of_day = KEYS[NEXT_KEY], nil
if mints_key then
  mints_of_day = count_day_mints(mints_key, token, units, ARGV[NEXT_ARG])
  if not mints_of_day then return refuse('limit_reached') end
end
local free, held = mint(publish, wallet_key, lines_key, totals_key, ledger_key, nonce, user, token, decimals, units,
  reason, ref)
if not free then return refuse('invalid_amount') end
if mints_key then redis.call('HSET', mints_key, token, mints_of_day) end
return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce, free, held})
