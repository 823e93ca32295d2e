-- lib_init_room: opens a new room: seats its creator, takes the stake and adds reserved seats.
-- INCLUDES  clock int_to_string format_decimal room_params room begin_change add_seat take_stake
--           emit_room_event format_participants autostart_room
-- opening has number (the room's id as a number), code, doc (what only readers need), profile (of
-- the creator) and reserved, the seats whose users get a reserved seat.
local function init_room(room, opening)
  local profile = opening.profile
  set_field(room, 'set', room.fields.set)
  set_field(room, 'doc', table.concat({opening.number, opening.code, profile, opening.doc}, '\t'))
  set_field(room, 'created', now_text)
  room.fields.seq = '0'
  room.status, room.host, room.host_profile, room.version, room.pot = 'CREATED', user, profile, '0', '0'
  begin_change(room)
  add_seat(room, user, 'active', room.entry, profile)
  take_stake(room, user)
  for _, seat in ipairs(opening.reserved) do add_seat(room, seat.user, 'reserved', '0', seat.profile) end
  redis.call('ZADD', all_key, '0', room.id)
  redis.call('ZADD', every_key, '0', room.id)
  local deadline = now_ms + math.min(tonumber(room.idle_ms), tonumber(room.age_ms))
  redis.call('ZADD', due_key, int_to_string(deadline), room.id)
  emit_room_event(room, 'room.created', '"code":"' .. opening.code .. '","gameId":' .. room.game ..
    ',"creator":' .. profile .. ',"maxPlayers":' .. room.max_players ..
    ',"tokenId":' .. (room.token == '' and 'null' or '"' .. room.token .. '"') ..
    ',"roomEntry":' .. format_decimal(room.entry, room.decimals) .. ',"roomEntryAmount":"' .. room.entry .. '",' ..
    format_participants(room))
  autostart_room(room)
end
