-- lib_seats: a room has one field for each seat, "s<user>", packed as the list room_seat says.
-- read_seats returns all seats in seating order, each with user, state, stake, order and profile.
local function read_seats(room_key)
  local seats, fields = {}, redis.call('HGETALL', room_key)
  for i = 1, #fields, 2 do
    local user = string.match(fields[i], '^s(%d+)$')
    if user then
      UNPACK(fields[i + 1], room_seat: state stake order profile)
      seats[#seats + 1] = {user = user, state = state, stake = stake, order = tonumber(order), profile = profile}
    end
  end
  table.sort(seats, function(a, b) return a.order < b.order end)
  return seats
end
