-- lib_format_participants: prints the members that events of joining and leaving have in common.
-- INCLUDES  format_decimal list_active_seats
-- The players themselves are not repeated: that would make filling a room O(seats²).
local function format_participants(room)
  return '"participantCount":' .. #list_active_seats(room) .. ',"totalWager":' ..
    format_decimal(room.pot, room.decimals) .. ',"totalWagerAmount":"' .. room.pot .. '"'
end
