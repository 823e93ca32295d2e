-- lib_start_room: what every start of a room writes, but for the fields of the room.
-- start_room moves the room in the indexes; the caller emits room.started and writes the room.
local function start_room(open_key, created_key, started_key, due_key, visibility, room_id, deadline)
  if visibility == 'public' then
    redis.call('ZREM', open_key, room_id)
    redis.call('ZREM', created_key, room_id)
    redis.call('ZADD', started_key, '0', room_id)
  end
  redis.call('ZADD', due_key, string.format('%d', deadline), room_id)
end

-- drop_reserved removes the seats that are still held: they fall away at the start.
local function drop_reserved(room_key, reserved)
  if reserved == '0' then return end
  local fields = redis.call('HGETALL', room_key)
  for i = 1, #fields, 2 do
    if string.find(fields[i], '^s%d') and string.find(fields[i + 1], '^reserved') then redis.call('HDEL', room_key, fields[i]) end
  end
end
