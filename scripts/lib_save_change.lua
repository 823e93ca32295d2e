-- lib_save_change: the last write of a change of a room.
-- INCLUDES  receipt marks
-- save_change stores fields of the room, given as pairs of name and value, and that the call was
-- made: a call with a key leaves a receipt, one without a key its nonce among the marks.
local function save_change(room_key, receipt_key, fingerprint, ttl_ms, nonce, marks, ...)
  if receipt_key then
    redis.call('HSET', room_key, ...)
    save_success(receipt_key, fingerprint, ttl_ms, nonce)
  else
    redis.call('HSET', room_key, 'marks', add_mark(marks, nonce), ...)
  end
end
