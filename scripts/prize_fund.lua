-- prize_fund: moves units from the house, or new ones, into the account of a source of prizes, once,
-- or changes nothing.
-- INCLUDES  clock amounts house day_mints
-- KEYS      1 prize  2 totals  3 ledger  4 ledger base  then mints by server keys, when one of them
--           funds
-- ARGV      1 nonce  2 source  3 token  4 decimals of the token  5 units  6 from: house or mint
--           7 most entries that are not folded  then the units that the game's server keys may mint
--           in a day, when one of them funds
-- RETURNS   ok stale insufficient_funds invalid_amount limit_reached
-- INVARIANT minted is what the ledger brought in; the house has never less than nothing; server keys
--           mint no more in a day than they may; a source is funded once
-- After ok follows 1, or 0 when the source is over: it was voided or paid. Stale means that too many
-- entries of the ledger are not folded.
local prize_key, totals_key, ledger_key, base_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local nonce, source, token, decimals, units, from, most = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]

local stored = redis.call('HMGET', prize_key, 'from', 'pool', 'state')
if stored[3] == 'VOID' or stored[3] == 'PAID' then return {'ok', '0'} end
if stored[1] then return {'ok', '1'} end
local total, account, minted, mints_of_day = 'minted:' .. token, 'h', nil, nil
local mints_key = #KEYS > 4 and KEYS[#KEYS]
if from == 'mint' then
  account, minted = 'm', add_amounts(redis.call('HGET', totals_key, total) or '0', units)
  if not has_at_least('4000000000000000000', minted) then return 'invalid_amount' end
  if mints_key then
    mints_of_day = count_day_mints(mints_key, token, units, ARGV[#ARGV])
    if not mints_of_day then return 'limit_reached' end
  end
else
  local house = units == '0' and '0' or read_house(totals_key, ledger_key, base_key, token, most)
  if not house then return 'stale' end
  if not has_at_least(house, units) then return 'insufficient_funds' end
end

local _, now = read_clock()
if units ~= '0' then
  redis.call('RPUSH', ledger_key, -- first: it fails, before anything was moved, when SET spoiled the list
    now .. '|' .. nonce .. '|' .. token .. '|prize_fund|' .. source .. '|' .. account .. ':-' .. units .. ';p:' .. units)
  if minted then redis.call('HSET', totals_key, total, minted) end
  if mints_of_day then redis.call('HSET', mints_key, token, mints_of_day) end
end
redis.call('HSET', prize_key, 'token', token, 'decimals', decimals, 'from', from, 'funded', units,
  'pool', add_amounts(stored[2] or '0', units))
return {'ok', '1'}
