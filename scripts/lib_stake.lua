-- lib_stake: how a stake leaves the pot.
-- INCLUDES  amounts balance count_stake
-- release_stake takes a stake out of what a player holds and adds what is paid to what the player
-- can spend.
local function release_stake(publish, wallet_key, lines_key, nonce, now, token, decimals, stake, paid, reason, room_id)
  local free, held, line, limited = read_balance(wallet_key, token)
  if paid ~= '0' then free = add_amounts(free, paid) end
  held = subtract_amounts(held, stake)
  write_balance(publish, wallet_key, lines_key, nonce, now, token, free, held, limited, string.format('%d', line + 1),
    'user.balance', decimals .. '|' .. paid .. '|' .. free .. '|' .. held .. '|' .. reason .. '|' .. room_id)
  if limited ~= '' then count_stake(wallet_key, token, now, -paid, -1) end
end
