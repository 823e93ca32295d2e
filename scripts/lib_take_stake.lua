-- lib_take_stake: moves the entry from a user's wallet into the pot.
-- INCLUDES  int_to_string move_money post_room_entry
local function take_stake(room, id)
  local entry = room.entry
  if entry == '0' then return end
  move_money(room, id, '-' .. entry, entry, 'entry')
  post_room_entry(room, 'entry', 'w:' .. id .. ':-' .. entry .. ';e:' .. room.id .. ':' .. entry,
    {'wallets', 'escrow'}, {'-' .. entry, entry})
  room.pot = int_to_string(room.pot + entry)
end
