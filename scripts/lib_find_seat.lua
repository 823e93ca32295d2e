-- lib_find_seat: returns the seat of a user, or nil.
local function find_seat(room, id)
  for _, seat in ipairs(room.seats) do
    if seat.user == id then return seat end
  end
end
