-- lib_format_participants: prints the members that events of joining and leaving have in common.
-- INCLUDES  format_decimal list_active_seats
local function format_participants(room)
  local list = list_active_seats(room)
  for i, seat in ipairs(list) do list[i] = seat.profile end
  return '"participants":[' .. table.concat(list, ',') .. '],"totalWager":' ..
    format_decimal(room.pot, room.decimals) .. ',"totalWagerAmount":"' .. room.pot .. '"'
end
