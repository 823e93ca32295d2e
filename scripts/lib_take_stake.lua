-- lib_take_stake: what a seat costs.
-- take_stake moves the entry from a player's wallet into the pot. Check that the balance has it first.
local function take_stake(publish, wallet_key, lines_key, ledger_key, nonce, now, user, token, decimals, entry, room_id)
  local free, held, seq = read_balance(wallet_key, token)
  free, held = subtract_amounts(free, entry), add_amounts(held, entry)
  redis.call('RPUSH', ledger_key,
    now .. '|' .. nonce .. '|' .. token .. '|entry|' .. room_id .. '|w' .. user .. ':-' .. entry .. ';e:' .. entry)
  write_balance(publish, wallet_key, lines_key, nonce, now, token, free, held, string.format('%d', seq + 1), 'user.balance',
    decimals .. '|-' .. entry .. '|' .. free .. '|' .. held .. '|entry|' .. room_id)
end
