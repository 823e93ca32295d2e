-- wallet_grant: mints the sign-up grant of a game into a player's wallet, once, or changes nothing.
-- INCLUDES  clock amounts balance mint day_mints
-- KEYS      1 wallet  2 lines  3 totals  4 ledger  5 mints_by_grants
-- ARGV      1 publish  2 nonce  3 user  4 token  5 decimals  6 units  7 ref  8 limit: units that
--           the game's grants may mint in a day
-- LEDGER    if the player had no grant
-- RETURNS   ok invalid_amount limit_reached
-- INVARIANT minted is what the ledger brought in; the wallet's field ":grant" is there exactly when
--           the grant was made; grants mint no more in a day than they may
if redis.call('HEXISTS', wallet_key, ':grant') == 1 then return {'ok', nonce} end
local mints_of_day = count_day_mints(mints_by_grants_key, token, units, limit)
if not mints_of_day then return {'limit_reached'} end
local free = mint(publish, wallet_key, lines_key, totals_key, ledger_key, nonce, user, token, decimals, units,
  'grant', ref)
if not free then return {'invalid_amount'} end
redis.call('HSET', mints_by_grants_key, token, mints_of_day)
redis.call('HSET', wallet_key, ':grant', '1')
return 'ok'
