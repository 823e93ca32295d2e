-- lib_begin_change: raises the version of the room and remembers the call, see is_resend.
-- INCLUDES  clock int_to_string room_params room
local function begin_change(room)
  room.version = int_to_string(room.version + 1)
  set_field(room, 'changed', now_text)
  if actor ~= '' then
    local last = string.match(room.fields['did:' .. actor] or '', '(%d+),$')
    set_field(room, 'did:' .. actor, ',' .. (last and last .. ',' or '') .. nonce .. ',')
  end
end
