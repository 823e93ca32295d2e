-- prize_pay: pays the next lines of a plan, and behind the last one returns what is left of the
-- pool to where it came from, or changes nothing.
-- INCLUDES  clock amounts balance count_stake
-- FLAGS     allow-oom
-- KEYS      1 prize  2 plan  3 totals  4 ledger  then wallet and lines of each of the users but 0,
--           the house; where the line has an asset also inventory and asset
-- ARGV      1 publish  2 nonce  3 source  4 next_line: lines that are paid  5 wanted: how many
--           lines follow  6 given_lines: these, with commas between them
-- LEDGER    if units move
-- RETURNS   ok stale
-- INVARIANT a line is paid once, in its order; the account of a source that is PAID is empty
-- Stale means that others have paid meanwhile, or that the lines are not those of the plan.
wanted = tonumber(wanted)

local stored = redis.call('HMGET', prize_key, 'state', 'next', 'lines', 'pool', 'paid', 'token', 'decimals', 'from',
  'funded')
local state, cursor, pool, paid, token, decimals = stored[1], stored[2], stored[4], stored[5], stored[6], stored[7]
if state == 'PAID' or cursor and tonumber(cursor) >= next_line + wanted and wanted > 0 then
  return {'ok', nonce}
end
if state ~= 'PLANNED' or cursor ~= next_line then return 'stale' end
-- The keys are those of the lines that the caller has read.
local lines = {}
if wanted > 0 then lines = redis.call('LRANGE', plan_key, next_line, string.format('%d', next_line + wanted - 1)) end
if table.concat(lines, ',') ~= given_lines then return 'stale' end

-- Everything is read and computed before the first write. A player may have several lines, so the
-- last of them is found by token and user.
local _, now = read_clock()
local head, tail = '-' .. nonce .. '|user.prize|' .. now .. '|', '|prize|' .. source .. '|'
local head_of_token = token and head .. token .. '|' .. decimals .. '|' -- a source of assets alone has no token
local key, count, seqs, last_of, inventories, owned_keys = NEXT_KEY, 0, {}, {}, {}, {}
local wallets, lists, codes, frees, helds, limits, numbers, entries, won_units = {}, {}, {}, {}, {}, {}, {}, {}, {}
local postings, of_house, sum, small = {}, '0', '0', 0
for _, line in ipairs(lines) do
  local user, place, units, asset = string.match(line, '^(%d+):(%d+):(%d+):(.*)$')
  if #units <= 13 then small = small + units else sum = add_amounts(sum, units) end -- small is exact: it is below 1e15
  if user == '0' then
    of_house = add_amounts(of_house, units)
  else
    local wallet_key, code, start, won = KEYS[key], token, head_of_token, '||'
    count, wallets[count + 1], lists[count + 1] = count + 1, wallet_key, KEYS[key + 1]
    key = key + 2
    if asset ~= ':' then
      local id, quantity = string.match(asset, '^(%d+):(%d+)$')
      local inventory_key, priced = KEYS[key], redis.call('HMGET', KEYS[key + 1], 'token', 'decimals')
      key = key + 2
      if units == '0' then -- no unit moves, as in a purchase of what is free
        code, start = priced[1], head .. priced[1] .. '|' .. priced[2] .. '|'
      end
      local pieces = inventories[inventory_key] or {}
      inventories[inventory_key] = pieces
      local owned = string.format('%d', (pieces[id] or redis.call('HGET', inventory_key, id) or 0) + quantity)
      pieces[id] = owned
      owned_keys[#owned_keys + 1] = {inventory_key, id, owned}
      won = id .. '|' .. quantity .. '|' .. owned
    end
    local of_token = last_of[code] or {}
    last_of[code] = of_token
    local before, free, held, seq, limited = of_token[user], nil, nil, nil, nil
    if before then
      free, held, limited = frees[before], helds[before], limits[before]
    else
      free, held, seq, limited = read_balance(wallet_key, code)
    end
    free, seq = add_amounts(free, units), string.format('%d', (seqs[user] or seq) + 2)
    of_token[user], seqs[user] = count, seq
    codes[count], frees[count], helds[count], limits[count], numbers[count] = code, free, held, limited, seq
    won_units[count] = units
    entries[count] = seq .. start .. units .. '|' .. free .. '|' .. held .. tail .. place .. '|' .. won
    if units ~= '0' then postings[#postings + 1] = ';w' .. user .. ':' .. units end
  end
end
sum = sum == '0' and string.format('%d', small) or add_amounts(sum, string.format('%d', small))
next_line, paid = next_line + #lines, add_amounts(paid, sum)
local is_last, burnt = next_line == tonumber(stored[3]), nil
if not has_at_least(pool, paid) then return 'stale' end
if is_last then
  local left = subtract_amounts(pool, paid)
  sum = add_amounts(sum, left)
  if stored[8] == 'mint' and has_at_least(stored[9], left) then
    if left ~= '0' then
      burnt = subtract_amounts(redis.call('HGET', totals_key, 'minted:' .. token), left)
      postings[#postings + 1] = ';m:' .. left
    end
  else
    of_house = add_amounts(of_house, left)
  end
end
if of_house ~= '0' then postings[#postings + 1] = ';h:' .. of_house end

if #postings > 0 then
  lists[#lists + 1] = ledger_key
  entries[#lists] =
    now .. '|' .. nonce .. '|' .. token .. '|prize|' .. source .. '|p:-' .. sum .. table.concat(postings)
end
-- A list that SET has spoiled fails before any money has moved, and what was appended is taken
-- back. To ask for the types of all keys first costs a sixteenth of a hundred payouts. No command
-- behind this can fail: the other keys were read.
local appended = 0
local is_appended, failure = pcall(function()
  for i = 1, #lists do
    redis.call('RPUSH', lists[i], entries[i])
    appended = i
  end
end)
if not is_appended then
  for i = 1, appended do redis.call('RPOP', lists[i]) end
  error(failure, 0)
end
if burnt then redis.call('HSET', totals_key, 'minted:' .. token, burnt) end
for _, pieces in ipairs(owned_keys) do redis.call('HSET', pieces[1], pieces[2], pieces[3]) end
for i = 1, count do
  redis.call('HSET', wallets[i], codes[i], frees[i] .. '|' .. helds[i] .. limits[i], ':seq', numbers[i])
  redis.call(publish, lists[i], entries[i])
  -- A prize counts in the limits as the payout of a room does.
  if limits[i] ~= '' and won_units[i] ~= '0' then count_stake(wallets[i], token, now, -won_units[i], 0) end
end
state = is_last and 'PAID' or state
redis.call('HSET', prize_key, 'next', string.format('%d', next_line), 'paid', paid, 'state', state)
if #postings > 0 then return 'ok' end
return {'ok', nonce}
