-- lib_end_room: what is checked, what is moved and what is left for others when a room ends.
-- reject_strings fails when one
-- of the KEYS from first to last holds a string. None of them should: SET by hand replaces a value
-- of any type, and the first command on it would fail after others had moved money.
local function reject_strings(first, last)
  local strings = redis.call('MGET', unpack(KEYS, first, last))
  for i = 1, last - first + 1 do
    if strings[i] then redis.call('LLEN', KEYS[first + i - 1]) end -- fails with WRONGTYPE
  end
end

-- close_room moves the room to an index of ended rooms and makes it due when its events are to be
-- dropped, or the room to be removed, whichever comes first. open_key is nil for a room that was
-- started.
local function close_room(status_key, ended_key, open_key, due_key, visibility, room_id, now_ms, keep_ms, events_ms)
  if visibility == 'public' then
    if open_key then redis.call('ZREM', open_key, room_id) end
    redis.call('ZREM', status_key, room_id)
    redis.call('ZADD', ended_key, '0', room_id)
  end
  redis.call('ZADD', due_key, string.format('%d', now_ms + math.min(tonumber(keep_ms), tonumber(events_ms))), room_id)
end

-- add_to_outbox leaves how the room has ended for whoever waits for that. It is called for a room
-- with feeds alone, after the last change that can fail.
local function add_to_outbox(outbox_key, room_key, room_id, ended, game, feeds, status, reason, decimals, placements)
  local fields = redis.call('HMGET', room_key, 'started', 'document')
  local started, settled_by = fields[1] or '', string.match(fields[2] or '', '^%a*')
  redis.call('HSET', outbox_key, room_id, PACK(room_end))
end
