-- lib_players: the keys of each player whose money or list of rooms a script may change, at the end of KEYS.
-- collect_player_keys maps user ids, "7,8,9", to {player_rooms, wallet, lines}; a free room has player_rooms alone.
local function collect_player_keys(users, first, paid)
  local keys_of, next_key = {}, first
  for user in string.gmatch(users, '%d+') do
    if paid then
      keys_of[user] = {KEYS[next_key], KEYS[next_key + 1], KEYS[next_key + 2]}
      next_key = next_key + 3
    else
      keys_of[user] = {KEYS[next_key]}
      next_key = next_key + 1
    end
  end
  return keys_of
end

-- has_all_players reports whether the keys of every seat are there.
local function has_all_players(seats, keys_of)
  for _, seat in ipairs(seats) do
    if not keys_of[seat.user] then return false end
  end
  return true
end
