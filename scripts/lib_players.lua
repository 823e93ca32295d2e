-- lib_players: the keys of each player whose money or list of rooms a script may change, in KEYS
-- from one place on. collect_player_keys maps user ids, "7,8,9", to {player_rooms, wallet, lines},
-- or to {player_rooms} where no money moves.
local function collect_player_keys(users, first, with_money)
  local keys_of, next_key = {}, first
  for user in string.gmatch(users, '%d+') do
    if with_money then
      keys_of[user] = {KEYS[next_key], KEYS[next_key + 1], KEYS[next_key + 2]}
      next_key = next_key + 3
    else
      keys_of[user] = {KEYS[next_key]}
      next_key = next_key + 1
    end
  end
  return keys_of
end

-- has_all_players reports whether the keys of every seat are there, or of every seat in a state.
local function has_all_players(seats, keys_of, state)
  for _, seat in ipairs(seats) do
    if (not state or seat.state == state) and not keys_of[seat.user] then return false end
  end
  return true
end
