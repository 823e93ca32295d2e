-- lib_room_wallets: holds the keys of every wallet that the script may change, by the user's id.
-- INCLUDES  room_params
-- KEYS      then wallet, lines and events of each user in wallet_ids
local wallets, users = {}, {}
for id in string.gmatch(wallet_ids, '%d+') do users[#users + 1] = id end
for i, id in ipairs(users) do
  local last = #KEYS - 3 * (#users - i)
  wallets[id] = {wallet = KEYS[last - 2], lines = KEYS[last - 1], events = KEYS[last]}
end
