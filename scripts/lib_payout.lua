-- lib_payout: the end of a room with a result.
-- INCLUDES  stake
-- placements are "<user>:<place>:<units>:<score>;…", one for each seat, place 0 for a forfeited
-- one. Every seat of a paid room that was started has the entry as its stake.

-- is_balanced reports whether placements and rake are the pot exactly, and the pot is one entry for
-- each of the placements, of which there must be as many as seats. No partial sum exceeds the pot,
-- so every one is exact.
local function is_balanced(placements, rake, pot, entry, seats)
  local sum, limit, count, named = tonumber(rake), tonumber(pot), 0, {}
  if sum < 0 or sum > limit then return false end
  for user, units in string.gmatch(placements, '(%d+):%d+:(%d+):[^;]*;') do
    units = tonumber(units)
    sum, count = sum + units, count + 1
    if units > limit or sum > limit or named[user] then return false end
    named[user] = true
  end
  return sum == limit and count == seats and count * entry == limit
end

-- pay_out releases every stake, pays the placements and the rake, and takes the room off the
-- players' lists. KEYS has from first on player_rooms, wallet and lines of each placement.
-- is_balanced must be true.
local function pay_out(publish, ledger_key, first, nonce, now, token, decimals, entry, pot, rake, placements, room_id)
  local postings, next_key = {}, first
  for user, units in string.gmatch(placements, '(%d+):%d+:(%d+):[^;]*;') do
    local reason = 'lost'
    if units ~= '0' then
      reason, postings[#postings + 1] = 'payout', ';w' .. user .. ':' .. units
    end
    release_stake(publish, KEYS[next_key + 1], KEYS[next_key + 2], nonce, now, token, decimals, entry, units, reason,
      room_id)
    redis.call('ZREM', KEYS[next_key], room_id)
    next_key = next_key + 3
  end
  if rake ~= '0' then postings[#postings + 1] = ';h:' .. rake end
  redis.call('RPUSH', ledger_key, now .. '|' .. nonce .. '|' .. token .. '|payout|' .. room_id .. '|e:-' .. pot ..
    table.concat(postings))
end
