-- lib_finish_room: what every end of a room with a result writes, but for the fields of the room.
-- INCLUDES  event payout end_room
-- finish_room pays the pot out, takes the room off the players' lists and moves it to the finished
-- ones. KEYS has from first to last what belongs to the seats: player_rooms, in a paid room with
-- wallet and lines and in the order of the payouts, those of read_payouts. status_key is the index
-- that the room leaves.
-- A key of a wrong type, which SET leaves behind, fails before any money has moved, and what was
-- written until then is taken back: else each retry would pay again. To ask for the types of all
-- keys first would cost a twelfth of a finish.
local function finish_room(publish, events_key, status_key, finished_key, due_key, ledger_key, first, last, seq, nonce,
  now_ms, now, version, token, decimals, entry, pot, rake, placements, payouts, room_id, visibility, keep_ms, events_ms)
  local lists, entries, step, writes = {}, {}, 1, nil
  if payouts then
    step, writes = 3, prepare_payouts(lists, entries, payouts, first, ledger_key, nonce, now, token, decimals, entry,
      pot, rake, room_id)
  end
  local event = format_event(seq, nonce, 'room.finished', now,
    version .. '|' .. decimals .. '|' .. rake .. '|' .. placements)
  lists[#lists + 1] = events_key
  entries[#lists] = event

  local appended, left, length = 0, first - step, 0
  local is_written, failure = pcall(function()
    for i = 1, #lists do
      length = redis.call('RPUSH', lists[i], entries[i])
      appended = i
    end
    for i = first, last, step do
      redis.call('ZREM', KEYS[i], room_id)
      left = i
    end
    close_room(status_key, finished_key, nil, due_key, visibility, room_id, now_ms, keep_ms, events_ms)
  end)
  if not is_written then
    for i = 1, appended do redis.call('RPOP', lists[i]) end
    for i = first, left, step do redis.call('ZADD', KEYS[i], '0', room_id) end
    if visibility == 'public' then
      redis.pcall('ZADD', status_key, '0', room_id) -- one of these may be what failed
      redis.pcall('ZREM', finished_key, room_id)
    end
    error(failure, 0)
  end

  if payouts then pay_out(publish, lists, entries, writes, first, now, token) end
  publish_event(publish, events_key, event, length)
end
