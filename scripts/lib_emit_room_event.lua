-- lib_emit_room_event: emits one event of the room; members are those of its data, without
-- braces.
-- INCLUDES  int_to_string emit_event room_params room
local function emit_room_event(room, kind, members)
  local seq = int_to_string(room.fields.seq + 1)
  set_field(room, 'seq', seq)
  room.position = seq .. '-' .. nonce
  emit_event(publish, room.events, 256, nonce, seq, kind, '"roomId":"' .. room.id .. '",',
    '{' .. members .. ',"version":' .. room.version .. '}')
end
