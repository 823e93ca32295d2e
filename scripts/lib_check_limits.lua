-- lib_check_limits: checks a stake against the limits that the player set. They are in the wallet:
-- ":excluded" is the time until which the player pays no entry and no fee, '0' for none, and
-- ":limits:<token>" is packed as the list wallet_limits says. Both are read only for a player whose
-- balance has the flag of read_balance. A helper is inside of its function, since each function of
-- a script costs all who run it.
-- INCLUDES  amounts
-- check_limits returns nil when a player may stake the entry, else the reply that says why not: the
-- code, the nonce and the values behind it. A loss counts in its hour and the 24 after it.
local function check_limits(wallet_key, nonce, token, decimals, entry, now_ms)
  local fields = redis.call('HMGET', wallet_key, ':excluded', ':limits:' .. token)
  local excluded, limits = fields[1], fields[2]
  if excluded and now_ms < tonumber(excluded) then return {'self_excluded', nonce, excluded} end
  if not limits then return nil end
  UNPACK(limits, wallet_limits)
  local function counts(limit, next_limit, from)
    if from ~= '' and now_ms >= tonumber(from) then return next_limit end
    return limit
  end
  stake, rooms = counts(stake, stake_next, stake_from), counts(rooms, rooms_next, rooms_from)
  loss = counts(loss, loss_next, loss_from)
  if stake ~= '' and not has_at_least(stake, entry) then
    return {'stake_limit', nonce, stake, entry, token, decimals}
  end
  if rooms ~= '' and tonumber(open) >= tonumber(rooms) then
    return {'open_rooms_limit', nonce, rooms, open, token}
  end
  if loss == '' then return nil end
  local lost, oldest = 0, math.floor(now_ms / 3600000) - 24
  for hour, units in string.gmatch(hours, '(%d+):(-?%d+),') do -- bounded, as in count_stake
    if tonumber(hour) >= oldest then lost = math.max(-9007199254740991, math.min(9007199254740991, lost + units)) end
  end
  if lost + entry > tonumber(loss) then
    return {'loss_limit', nonce, loss, string.format('%.0f', lost), entry, token, decimals}
  end
end
