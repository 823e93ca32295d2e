-- lib_end_room: the places of a room in the indexes when it ends.
-- close_room moves the room to an index of ended rooms and says when it is to be removed.
local function close_room(status_key, ended_key, open_key, due_key, visibility, room_id, remove_at)
  if visibility == 'public' then
    redis.call('ZREM', open_key, room_id)
    redis.call('ZREM', status_key, room_id)
    redis.call('ZADD', ended_key, '0', room_id)
  end
  redis.call('ZADD', due_key, string.format('%d', remove_at), room_id)
end
