-- lib_add_seat: adds a seat, the last in order, in place of a reserved one of the same user.
-- INCLUDES  clock remove_seat
local function add_seat(room, id, state, stake, profile)
  remove_seat(room, id)
  room.seats[#room.seats + 1] = {user = id, state = state, ready = '0', since = now_text, stake = stake,
    profile = profile}
end
