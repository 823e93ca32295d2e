-- lib_return_stake: moves the stake of one seat from the pot back to its user.
-- INCLUDES  int_to_string move_money post_room_entry
local function return_stake(room, seat)
  local stake = seat.stake
  if stake == '0' then return end
  move_money(room, seat.user, stake, '-' .. stake, 'refund')
  post_room_entry(room, 'refund', 'e:' .. room.id .. ':-' .. stake .. ';w:' .. seat.user .. ':' .. stake,
    {'escrow', 'wallets'}, {'-' .. stake, stake})
  room.pot = int_to_string(room.pot - stake)
end
