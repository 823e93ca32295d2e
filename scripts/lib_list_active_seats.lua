-- lib_list_active_seats: returns the active seats in seating order.
local function list_active_seats(room)
  local list = {}
  for _, seat in ipairs(room.seats) do
    if seat.state == 'active' then list[#list + 1] = seat end
  end
  return list
end
