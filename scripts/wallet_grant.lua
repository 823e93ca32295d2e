-- wallet_grant: mints a game's welcome grant into a player's wallet, once for each game, or changes nothing.
-- USES  clock event money
-- KEYS  1 wallet  2 lines  3 events  4 totals  5 ledger  6 token
-- ARGV  1 publish  2 nonce  3 user  4 game  5 code  6 units
-- GIVES ok token_not_found invalid_amount
-- KEEPS minted == wallets + escrow + house; the wallet's field "grant:<game>" stands exactly when the grant was made
local wallet, lines, events, totals, journal, token = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local publish, nonce, user, game, code, units = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

if redis.call('HEXISTS', wallet, 'grant:' .. game) == 1 then return {'ok'} end
local decimals = redis.call('HGET', token, 'decimals')
if not decimals then return {'token_not_found'} end
if not mintable(wallet, totals, code, units) then return {'invalid_amount'} end

redis.call('HSET', wallet, 'grant:' .. game, units)
local ref = 'game:' .. game
book(totals, journal, code, 'grant', ref, 'm:-' .. units .. ';w:' .. user .. ':' .. units, {'minted', 'wallets'}, {units, units})
move(publish, nonce, wallet, lines, events, code, decimals, units, '0', 'grant', ref)
return {'ok'}
