-- lib_is_resend: reports whether this very call was done before: its reply was lost and it came
-- again.
-- INCLUDES  room_params
-- The nonces of the last 32 or more changes of the room are remembered, in 512 bytes: a call is
-- resent within seconds, and a field for each actor would grow with everybody who ever came.
local function is_resend(room)
  local marks = room.fields.marks
  return marks and string.find(marks, ',' .. nonce .. ',', 1, true) ~= nil
end
