-- lib_dispute_room: how a room becomes disputed.
-- INCLUDES  event
-- dispute_room emits room.disputed and moves the room to the disputed ones, until its stakes go
-- back after dispute_ms.
local function dispute_room(publish, room_key, events_key, started_key, disputed_key, due_key, seq, nonce, now_ms, now,
  version, room_id, visibility, dispute_ms)
  local refund_at = string.format('%d', now_ms + dispute_ms)
  emit_event(publish, events_key, seq, nonce, now, 'room.disputed', version .. '|' .. refund_at)
  if visibility == 'public' then redis.call('ZREM', started_key, room_id) end
  redis.call('ZADD', disputed_key, '0', room_id)
  redis.call('ZADD', due_key, refund_at, room_id)
  redis.call('HSET', room_key, 'disputed', now, 'refund_at', refund_at)
end
