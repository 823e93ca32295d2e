-- lib_end_room: the places of a room in the indexes when it ends. close_room moves the room to an
-- index of ended rooms and makes it due when its events are to be dropped, or the room to be
-- removed, whichever comes first. open_key is nil for a room that was started.
local function close_room(status_key, ended_key, open_key, due_key, visibility, room_id, now_ms, keep_ms, events_ms)
  if visibility == 'public' then
    if open_key then redis.call('ZREM', open_key, room_id) end
    redis.call('ZREM', status_key, room_id)
    redis.call('ZADD', ended_key, '0', room_id)
  end
  redis.call('ZADD', due_key, string.format('%d', now_ms + math.min(tonumber(keep_ms), tonumber(events_ms))), room_id)
end
