-- lib_payout: the end of a room with a result. placements are "<user>:<place>:<units>:<score>;…", one for each seat, place 0 for a
-- forfeited one. Every seat of a paid room has the entry as its stake.
-- is_balanced reports whether placements and rake share out the pot exactly, and the pot is one entry for each of them.
-- No partial sum exceeds the pot, so every one is exact.
local function is_balanced(placements, rake, pot, entry)
  local sum, limit, count, seen = tonumber(rake), tonumber(pot), 0, {}
  if sum > limit then return false end
  for user, units in string.gmatch(placements, '(%d+):%d+:(%d+):[^;]*;') do
    units = tonumber(units)
    sum, count = sum + units, count + 1
    if units > limit or sum > limit or seen[user] then return false end
    seen[user] = true
  end
  return sum == limit and count * entry == limit
end

-- pay_out releases every stake, pays the placements and the rake, and takes the room off the players' lists. The keys of
-- the players are in KEYS from first on, in the order of the placements. Check is_balanced first.
local function pay_out(publish, first, nonce, now, token, decimals, entry, pot, rake, placements, room_id)
  local postings, next_key = '', first
  for user, units in string.gmatch(placements, '(%d+):%d+:(%d+):[^;]*;') do
    local wallet_key, lines_key = KEYS[next_key + 1], KEYS[next_key + 2]
    local free, held, seq = read_balance(wallet_key, token)
    local reason = 'lost'
    if units ~= '0' then
      reason, free, postings = 'payout', add_amounts(free, units), postings .. ';w' .. user .. ':' .. units
    end
    held = subtract_amounts(held, entry)
    write_balance(publish, wallet_key, lines_key, nonce, now, token, free, held, string.format('%d', seq + 1), 'user.balance',
      decimals .. '|' .. units .. '|' .. free .. '|' .. held .. '|' .. reason .. '|' .. room_id)
    redis.call('ZREM', KEYS[next_key], room_id)
    next_key = next_key + 3
  end
  if rake ~= '0' then postings = postings .. ';h:' .. rake end
  redis.call('RPUSH', KEYS[first - 1], now .. '|' .. nonce .. '|' .. token .. '|payout|' .. room_id .. '|e:-' .. pot .. postings)
end
