-- lib_set_seat_field: changes one member of a seat.
local function set_seat_field(room, seat, field, value)
  seat[field] = value
  room.seats_changed = true
end
