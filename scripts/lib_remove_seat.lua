-- lib_remove_seat: how a seat is given up before the start.
-- INCLUDES  stake
-- remove_seat deletes a seat, gives its stake back and takes the room off the player's list. It
-- returns the pot after it.
local function remove_seat(publish, room_key, keys, ledger_key, nonce, now, user, stake, token, decimals, pot, room_id)
  redis.call('HDEL', room_key, 's' .. user)
  redis.call('ZREM', keys[1], room_id)
  if stake == '0' then return pot end
  release_stake(publish, keys[2], keys[3], nonce, now, token, decimals, stake, stake, 'refund', room_id)
  redis.call('RPUSH', ledger_key,
    now .. '|' .. nonce .. '|' .. token .. '|refund|' .. room_id .. '|e:-' .. stake .. ';w' .. user .. ':' .. stake)
  return string.format('%d', pot - stake)
end
