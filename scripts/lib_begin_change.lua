-- lib_begin_change: raises the version of the room and remembers the call, see is_resend.
-- INCLUDES  clock int_to_string room_params room
local function begin_change(room)
  room.version = int_to_string(room.version + 1)
  set_field(room, 'changed', now_text)
  local marks = (room.fields.marks or ',') .. nonce .. ','
  if #marks > 512 then marks = string.match(marks, '^,%d+(,.*)$') end
  set_field(room, 'marks', marks)
end
