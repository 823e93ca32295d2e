-- lib_open_room: writes a new room with its creator seated and the stake taken.
-- INCLUDES  amounts balance check_limits event take_stake
-- open_room writes the room and returns nil, or changes nothing and returns a reply: stale (the
-- code is taken; or, followed by ids of rooms, which of these have ended must be looked up),
-- limit_reached (the creator has max_seats seats in rooms of the shard that have not ended; or,
-- followed by "rooms", made max_rooms of them; '0' for any number), insufficient_funds, a code of
-- check_limits, or ok for a resend, since nobody else makes a room of this id. first is where its
-- keys begin in KEYS: room, events, code, next_id, due, all, created, started, open, player_rooms
-- and rooms_made of the creator, then wallet, lines and ledger of a paid room, or free_rooms of a
-- free one. reserved is the number, as text, of the seats that the caller of open_room adds. ended
-- are ids, "," behind each, of rooms of the creator that have ended; with one more in front they
-- are all of those in rooms_made: no script that ends a room has the key of its creator.
local function open_room(publish, nonce, now_ms, now, first, room_id, user, id_step, id_offset, code, settings,
  document, profile, reserved, max_seats, max_rooms, ended)
  local room_key, events_key, code_key, next_key, due_key, all_key, created_key, started_key, open_key, rooms_key,
    made_key = unpack(KEYS, first, first + 10)
  UNPACK(settings, room_settings: entry token decimals max_players game visibility auto_start match_ms idle_ms age_ms)
  if redis.call('EXISTS', room_key, code_key) > 0 then
    if redis.call('EXISTS', room_key) == 1 then return {'ok', nonce, room_id} end
    return {'stale', nonce}
  end
  if max_seats ~= '0' and redis.call('ZCARD', rooms_key) >= tonumber(max_seats) then
    return {'limit_reached', nonce, max_seats}
  end
  if max_rooms ~= '0' then
    local made = redis.call('ZCARD', made_key)
    if made >= tonumber(max_rooms) then
      for id in string.gmatch(ended, '[^,]+') do
        if redis.call('ZSCORE', made_key, id) then made = made - 1 end
      end
      if made >= tonumber(max_rooms) then
        if string.byte(ended) == 44 then return {'limit_reached', nonce, max_rooms, 'rooms'} end -- ","
        return {'stale', nonce, unpack(redis.call('ZRANGE', made_key, '0', '-1'))}
      end
    end
  end
  local paid, money, free, held, line, limited = entry ~= '0', first + 11
  if paid then
    free, held, line, limited = read_balance(KEYS[money], token)
    local over = limited ~= '' and check_limits(KEYS[money], nonce, token, decimals, entry, now_ms)
    if over then return over end
    if not has_at_least(free, entry) then return {'insufficient_funds', nonce, free, entry, token, decimals} end
  end

  local starts = auto_start == '1' and max_players == '1'
  local status, version, seq, pot, active, ready, host, changed = 'CREATED', '1', '1', entry, '1', '0', user, now
  redis.call('SET', code_key, room_id)
  local id = string.format('%d', redis.call('INCR', next_key) * id_step + id_offset)
  if paid then
    take_stake(publish, KEYS[money], KEYS[money + 1], KEYS[money + 2], nonce, now, user, token, decimals, entry,
      room_id, free, held, line, limited)
  else
    redis.call('ZADD', KEYS[money], '0', room_id)
  end
  emit_event(publish, events_key, seq, nonce, now, 'room.created', version .. '|' .. code .. '|' .. game .. '|' ..
    max_players .. '|' .. token .. '|' .. decimals .. '|' .. entry .. '|' .. profile)
  if starts then
    status, seq = 'STARTED', '2'
    emit_event(publish, events_key, seq, nonce, now, 'room.started',
      version .. '|auto|' .. string.format('%d', now_ms + match_ms))
    redis.call('HSET', room_key, 'started', now)
  end
  redis.call('HSET', room_key, 'settings', settings, 'document', document, 'code', code, 'id', id, 'created', now,
    'live', PACK(room_live), 's' .. user, 'active|0|' .. now .. '|' .. entry .. '|1000|' .. profile)
  redis.call('ZADD', all_key, '0', room_id)
  redis.call('ZADD', rooms_key, '0', room_id)
  if max_rooms ~= '0' then
    redis.call('ZADD', made_key, '0', room_id)
    for id in string.gmatch(ended, '[^,]+') do redis.call('ZREM', made_key, id) end
    redis.call('PEXPIRE', made_key, string.format('%d', age_ms + match_ms)) -- no room lasts longer
  end
  local wait_ms = starts and match_ms or math.min(tonumber(idle_ms), tonumber(age_ms))
  redis.call('ZADD', due_key, string.format('%d', now_ms + wait_ms), room_id)
  if visibility == 'public' then
    redis.call('ZADD', starts and started_key or created_key, '0', room_id)
    if not starts and 1 + reserved < tonumber(max_players) then redis.call('ZADD', open_key, '0', room_id) end
  end
end
