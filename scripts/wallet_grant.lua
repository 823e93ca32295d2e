-- wallet_grant: mints a game's signup grant into a player's wallet, once for each game, or
-- changes nothing.
-- INCLUDES  clock int_to_string format_time format_decimal is_at_least add_exact can_mint
--           hincrby_many emit_event apply_balance_change post_ledger_entry
-- KEYS      1 wallet  2 lines  3 events  4 totals  5 ledger  6 token
-- ARGV      1 publish command  2 nonce  3 user  4 game  5 token code  6 units
-- RETURNS   ok token_not_found invalid_amount
-- INVARIANT minted == wallets + escrow + house; the wallet's field "grant:<game>" is there
--           exactly when the grant was made
local wallet_key, lines_key, events_key = KEYS[1], KEYS[2], KEYS[3]
local totals_key, ledger_key, token_key = KEYS[4], KEYS[5], KEYS[6]
local publish, nonce, user, game, code, units = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

if redis.call('HEXISTS', wallet_key, 'grant:' .. game) == 1 then return {'ok'} end
local decimals = redis.call('HGET', token_key, 'decimals')
if not decimals then return {'token_not_found'} end
if not can_mint(wallet_key, totals_key, code, units) then return {'invalid_amount'} end

redis.call('HSET', wallet_key, 'grant:' .. game, units)
local ref = 'game:' .. game
post_ledger_entry(totals_key, ledger_key, {token = code, reason = 'grant', ref = ref,
  postings = 'm:-' .. units .. ';w:' .. user .. ':' .. units,
  accounts = {'minted', 'wallets'}, deltas = {units, units}})
apply_balance_change(publish, nonce, {wallet = wallet_key, lines = lines_key, events = events_key},
  {token = code, decimals = decimals, free = units, held = '0', reason = 'grant', ref = ref})
return {'ok'}
