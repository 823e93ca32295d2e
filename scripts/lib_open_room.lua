-- lib_open_room: writes a new room with its creator seated.
-- open_room writes a new room with its creator seated and the stake taken. first is where its keys begin in KEYS: room, events,
-- code, next_id, due, all, created, started, open, every, player_rooms, then wallet, lines, ledger of a paid room. reserved lists the users and
-- profiles of the seats to hold, by turns.
local function open_room(publish, nonce, now_ms, now, first, room_id, user, id_step, id_offset, code, settings, document, profile, held_for)
  local room_key, events_key, code_key, next_key, due_key, all_key, created_key, started_key, open_key, every_key, player_rooms_key =
    unpack(KEYS, first, first + 10)
  local entry, token, decimals, max_players, game, visibility, auto_start, match_ms, idle_ms, age_ms = string.match(settings,
    PATTERN(room_settings: entry token decimals max_players game visibility auto_start match_ms idle_ms age_ms))
  local status, version, seq, pot, active, ready, host, changed = 'CREATED', '1', '1', entry, '1', '0', user, now
  local reserved = string.format('%d', #held_for / 2)
  local fields = {'settings', settings, 'document', document, 'code', code, 'created', now,
    's' .. user, 'active|0|' .. now .. '|' .. entry .. '|1000|' .. profile}
  for i = 1, #held_for, 2 do
    fields[#fields + 1] = 's' .. held_for[i]
    fields[#fields + 1] = 'reserved|0|' .. now .. '|0|' .. (1000 + i) .. '|' .. held_for[i + 1]
  end
  redis.call('SET', code_key, room_id)
  fields[#fields + 1] = 'id'
  fields[#fields + 1] = string.format('%d', redis.call('INCR', next_key) * id_step + id_offset)
  if entry ~= '0' then
    take_stake(publish, KEYS[first + 11], KEYS[first + 12], KEYS[first + 13], nonce, now, user, token, decimals, entry, room_id)
  end
  emit_event(publish, events_key, seq, nonce, now, 'room.created', version .. '|' .. code .. '|' .. game .. '|' .. max_players ..
    '|' .. token .. '|' .. decimals .. '|' .. entry .. '|' .. profile)
  local starts = auto_start == '1' and max_players == '1'
  if starts then
    status, seq = 'STARTED', '2'
    emit_event(publish, events_key, seq, nonce, now, 'room.started', version .. '|auto')
    fields[#fields + 1] = 'started'
    fields[#fields + 1] = now
  end
  fields[#fields + 1] = 'live'
  fields[#fields + 1] = PACK(room_live)
  redis.call('HSET', room_key, unpack(fields))
  redis.call('ZADD', all_key, '0', room_id)
  redis.call('ZADD', every_key, '0', room_id)
  local wait_ms = starts and match_ms or math.min(tonumber(idle_ms), tonumber(age_ms))
  redis.call('ZADD', due_key, string.format('%d', now_ms + wait_ms), room_id)
  redis.call('ZADD', player_rooms_key, '0', room_id)
  if visibility == 'public' then
    redis.call('ZADD', starts and started_key or created_key, '0', room_id)
    if not starts and 1 + reserved < tonumber(max_players) then redis.call('ZADD', open_key, '0', room_id) end
  end
end
