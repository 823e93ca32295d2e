-- lib_is_resend: reports whether this very call was done before: its reply was lost and it came
-- again.
-- INCLUDES  room_params
-- Two calls of each actor are remembered, so that another call of the same actor in between does
-- no harm.
local function is_resend(room)
  local done = room.fields['did:' .. actor]
  return done and string.find(done, ',' .. nonce .. ',', 1, true) ~= nil
end
