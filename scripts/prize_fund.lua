-- prize_fund: moves units from the house, or new ones, into the account of a source of prizes,
-- once, and charges them to the budget of its leaderboard, or changes nothing.
-- INCLUDES  clock amounts house day_mints
-- KEYS      1 prize  2 totals  3 ledger  4 ledger_base  5 prize_budgets  then mints by server keys,
--           when one of them funds
-- ARGV      1 nonce  2 source  3 token  4 decimals  5 units  6 from: house or mint  7 most_entries:
--           that are not folded  8 board: '' for a source without a budget  9 funded_at: ms at
--           which the season is funded  10 until_ms: until, ms of its scheduled end, '' for none
--           then the units that the game's server keys may mint in a day, when one of them funds
-- LEDGER    if units move
-- RETURNS   ok stale insufficient_funds invalid_amount limit_reached
-- INVARIANT minted is what the ledger brought in; the house never has less than nothing; server
--           keys mint no more in a day than they may; a source is funded once, and a leaderboard
--           once until the scheduled end of the season that was funded last
-- After ok follows 1 when the source had its prizes or no unit moves, or 0 when it is over: it was
-- voided or paid. Stale means that too many entries of the ledger are not folded, or, with "budget"
-- behind it, that the budget of the leaderboard is spent.
local stored = redis.call('HMGET', prize_key, 'from', 'pool', 'state')
if stored[3] == 'VOID' or stored[3] == 'PAID' then return {'ok', '0'} end
if stored[1] then return {'ok', '1'} end
local spent_until = board ~= '' and redis.call('HGET', prize_budgets_key, board)
if spent_until and tonumber(funded_at) < tonumber(spent_until) then return {'stale', 'budget'} end
local total, account, minted, mints_of_day = 'minted:' .. token, 'h', nil, nil
local mints_key = KEYS[NEXT_KEY]
if from == 'mint' then
  account, minted = 'm', add_amounts(redis.call('HGET', totals_key, total) or '0', units)
  if not has_at_least('4000000000000000000', minted) then return 'invalid_amount' end
  if mints_key then
    mints_of_day = count_day_mints(mints_key, token, units, ARGV[NEXT_ARG])
    if not mints_of_day then return 'limit_reached' end
  end
else
  local house = units == '0' and '0' or read_house(totals_key, ledger_key, ledger_base_key, token, most_entries)
  if not house then return 'stale' end
  if not has_at_least(house, units) then return 'insufficient_funds' end
end

local _, now = read_clock()
if units ~= '0' then
  local postings = account .. ':-' .. units .. ';p:' .. units
  redis.call('RPUSH', ledger_key, -- first: it fails, before anything was moved, when SET spoiled the list
    now .. '|' .. nonce .. '|' .. token .. '|prize_fund|' .. source .. '|' .. postings)
  if minted then redis.call('HSET', totals_key, total, minted) end
  if mints_of_day then redis.call('HSET', mints_key, token, mints_of_day) end
end
if board ~= '' and until_ms ~= '' then redis.call('HSET', prize_budgets_key, board, until_ms) end
redis.call('HSET', prize_key, 'token', token, 'decimals', decimals, 'from', from, 'funded', units,
  'pool', add_amounts(stored[2] or '0', units))
if units ~= '0' then return 'ok' end
return {'ok', '1'}
