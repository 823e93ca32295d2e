-- lib_count_stake: counts what the limits of a player are compared with.
-- count_stake counts a change of what a player has staked less what came back, in the hour of now,
-- and of the rooms and tournaments in which the player has a stake. It is called for players with
-- the flag of read_balance. Sums stay within 2^53 - 1, where they are exact; no limit is higher.
local function count_stake(wallet_key, token, now, units, opened)
  local field = ':limits:' .. token
  local limits = redis.call('HGET', wallet_key, field)
  if not limits then return end
  UNPACK(limits, wallet_limits)
  open = string.format('%d', math.max(0, open + opened))
  local this_hour, kept = math.floor(now / 3600000), {}
  for hour, lost in string.gmatch(hours, '(%d+):(-?%d+),') do
    if tonumber(hour) == this_hour then
      units = math.max(-9007199254740991, math.min(9007199254740991, units + lost))
    elseif tonumber(hour) >= this_hour - 24 then
      kept[#kept + 1] = hour .. ':' .. lost .. ','
    end
  end
  hours = table.concat(kept) .. string.format('%d:%.0f,', this_hour, units)
  redis.call('HSET', wallet_key, field, PACK(wallet_limits))
end
