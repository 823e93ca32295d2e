-- lib_drop_reserved: the seats that are still reserved when a room starts. drop_reserved removes
-- them, from the room and from their players' lists.
local function drop_reserved(room_key, seats, keys_of, room_id)
  for _, seat in ipairs(seats) do
    if seat.state == 'reserved' then
      redis.call('HDEL', room_key, 's' .. seat.user)
      redis.call('ZREM', keys_of[seat.user][1], room_id)
    end
  end
end
