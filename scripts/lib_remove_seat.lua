-- lib_remove_seat: removes the seat of a user, if there is one.
local function remove_seat(room, id)
  for i, seat in ipairs(room.seats) do
    if seat.user == id then table.remove(room.seats, i); break end
  end
  room.seats_changed = true
end
