-- wallet_grant: mints the sign-up grant of a game into a player's wallet, once, or changes nothing.
-- INCLUDES  clock amounts balance mint
-- KEYS      1 wallet  2 lines  3 totals  4 ledger
-- ARGV      1 publish command  2 nonce  3 user  4 token  5 decimals of the token  6 units  7 ref
-- RETURNS   ok invalid_amount
-- INVARIANT minted is what the ledger brought in; the wallet's field ":grant" is there exactly when
--           the grant was made
local wallet_key, lines_key, totals_key, ledger_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local publish, nonce, user, token, decimals, units, ref = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]

if redis.call('HEXISTS', wallet_key, ':grant') == 1 then return 'ok' end
local free = mint(publish, wallet_key, lines_key, totals_key, ledger_key, nonce, user, token, decimals, units,
  'grant', ref)
if not free then return {'invalid_amount'} end
redis.call('HSET', wallet_key, ':grant', '1')
return 'ok'
