-- lib_payout: what the end of a room with a result pays.
-- INCLUDES  amounts balance count_stake
-- placements are "<user>:<place>:<units>:<score>;…", one for each seat, place 0 for a forfeited
-- one. Every seat of a paid room that was started has the entry as its stake.

-- read_payouts returns what the placements pay, {user, units, user, units, …}, or nil when they and
-- the rake are not the pot exactly, or the pot is not one entry for each of the placements, of
-- which there must be as many as seats. No partial sum exceeds the pot, so every one is exact.
local function read_payouts(placements, rake, pot, entry, seats)
  local payouts, sum, limit, count, named = {}, tonumber(rake), tonumber(pot), 0, {}
  if sum < 0 or sum > limit then return nil end
  for user, text in string.gmatch(placements, '(%d+):%d+:(%d+):[^;]*;') do
    local units = tonumber(text)
    sum = sum + units
    if units > limit or sum > limit or named[user] then return nil end
    named[user], payouts[count + 1], payouts[count + 2], count = true, user, text, count + 2
  end
  if sum ~= limit or count ~= 2 * seats or seats * entry ~= limit then return nil end
  return payouts
end

-- prepare_payouts reads every wallet and writes nothing. KEYS has from first on player_rooms,
-- wallet and lines of each of the payouts. It adds to lists and entries what is to be appended: the
-- lines of the players in their order, then the entry of the ledger. It returns the balances and
-- the numbers of the lines, balance, seq, balance, … and what count_stake needs, at -i for i.
local function prepare_payouts(lists, entries, payouts, first, ledger_key, nonce, now, token, decimals, entry, pot,
  rake, room_id)
  local writes, postings, key = {}, {}, first
  local kind = '-' .. nonce .. '|user.balance|' .. now .. '|' .. token .. '|' .. decimals .. '|'
  for i = 1, #payouts, 2 do
    local units, reason = payouts[i + 1], '|lost|'
    local free, held, line, limited = read_balance(KEYS[key + 1], token)
    if units ~= '0' then
      free, reason = add_amounts(free, units), '|payout|'
      postings[#postings + 1] = ';w' .. payouts[i] .. ':' .. units
    end
    local seq, balance = string.format('%d', line + 1), free .. '|' .. subtract_amounts(held, entry)
    lists[#lists + 1] = KEYS[key + 2]
    entries[#lists] = seq .. kind .. units .. '|' .. balance .. reason .. room_id
    writes[i], writes[i + 1] = balance .. limited, seq
    if limited ~= '' then writes[-i] = -units end
    key = key + 3
  end
  if rake ~= '0' then postings[#postings + 1] = ';h:' .. rake end
  lists[#lists + 1] = ledger_key
  entries[#lists] = now .. '|' .. nonce .. '|' .. token .. '|payout|' .. room_id .. '|e:-' .. pot ..
    table.concat(postings)
  return writes
end

-- pay_out stores the balances and publishes the lines, which are there already. No command of it
-- can fail: prepare_payouts has read the wallets.
local function pay_out(publish, lists, entries, writes, first, now, token)
  local key = first + 1
  for i = 1, #writes, 2 do
    local line = (i + 1) / 2
    redis.call('HSET', KEYS[key], token, writes[i], ':seq', writes[i + 1])
    redis.call(publish, lists[line], entries[line])
    if writes[-i] then count_stake(KEYS[key], token, now, writes[-i], -1) end
    key = key + 3
  end
end
