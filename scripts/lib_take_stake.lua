-- lib_take_stake: takes the stake of a player: the entry of a room, or the fee of a tournament.
-- INCLUDES  amounts balance count_stake
-- take_stake moves a stake from what a player can spend to what the wallet holds. room_id is the
-- room or the tournament. free, held, line and limited are those of read_balance; free must
-- cover the stake, and check_limits must allow it.
local function take_stake(publish, wallet_key, lines_key, ledger_key, nonce, now, user, token, decimals, entry, room_id,
  free, held, line, limited)
  free, held = subtract_amounts(free, entry), add_amounts(held, entry)
  write_balance(publish, wallet_key, lines_key, nonce, now, token, free, held, limited, string.format('%d', line + 1),
    'user.balance', decimals .. '|-' .. entry .. '|' .. free .. '|' .. held .. '|entry|' .. room_id)
  redis.call('RPUSH', ledger_key,
    now .. '|' .. nonce .. '|' .. token .. '|entry|' .. room_id .. '|w' .. user .. ':-' .. entry .. ';e:' .. entry)
  if limited ~= '' then count_stake(wallet_key, token, now, tonumber(entry), 1) end
end
