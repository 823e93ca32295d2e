-- lib_check_limits: whether the limits of a player allow a stake.
-- INCLUDES  amounts int_to_string limits
-- sum_losses returns what was staked less what came back in this hour and the 24 before it: a loss
-- counts for 24 to 25 hours. It is negative when more came back.
local function sum_losses(hours, now_ms)
  local sum, oldest = 0, math.floor(now_ms / 3600000) - 24
  for hour, units in string.gmatch(hours, '(%d+):(-?%d+),') do
    if tonumber(hour) >= oldest then sum = bound(sum + units) end
  end
  return sum
end

-- check_limits returns nil when a player may stake the entry, else the reply that says why not: the
-- code, the nonce and the values behind it.
local function check_limits(wallet_key, nonce, token, decimals, entry, now_ms)
  local fields = redis.call('HMGET', wallet_key, ':excluded', ':limits:' .. token)
  local excluded, limits = fields[1], fields[2]
  if excluded and now_ms < tonumber(excluded) then return {'self_excluded', nonce, excluded} end
  if not limits then return nil end
  local stake, stake_next, stake_from, rooms, rooms_next, rooms_from, loss, loss_next, loss_from, open, hours =
    string.match(limits, PATTERN(wallet_limits: stake stake_next stake_from rooms rooms_next rooms_from
      loss loss_next loss_from open hours))
  stake = current_limit(stake, stake_next, stake_from, now_ms)
  if stake ~= '' and not has_at_least(stake, entry) then
    return {'stake_limit', nonce, stake, entry, token, decimals}
  end
  rooms = current_limit(rooms, rooms_next, rooms_from, now_ms)
  if rooms ~= '' and tonumber(open) >= tonumber(rooms) then
    return {'open_rooms_limit', nonce, rooms, open, token}
  end
  loss = current_limit(loss, loss_next, loss_from, now_ms)
  if loss ~= '' then
    local lost = sum_losses(hours, now_ms)
    if lost + entry > tonumber(loss) then
      return {'loss_limit', nonce, loss, int_to_string(lost), entry, token, decimals}
    end
  end
end
