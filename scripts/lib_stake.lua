-- lib_stake: what a player has in the pot of a room.
-- release_stake takes a stake out of what the player holds and adds what is paid to what the player can spend.
local function release_stake(publish, keys, nonce, now, token, decimals, stake, paid, reason, room_id)
  local free, held, seq = read_balance(keys[2], token)
  if paid ~= '0' then free = add_amounts(free, paid) end
  held = subtract_amounts(held, stake)
  write_balance(publish, keys[2], keys[3], nonce, now, token, free, held, string.format('%d', seq + 1), 'user.balance',
    decimals .. '|' .. paid .. '|' .. free .. '|' .. held .. '|' .. reason .. '|' .. room_id)
end
