-- lib_finish_room: what every end of a room with a result writes, but for the fields of the room.
-- INCLUDES  event payout end_room
-- finish_room pays the pot out by the placements, takes the room off the players' lists and moves
-- it to the finished ones. KEYS has from first to last what belongs to the seats: player_rooms, in
-- a paid room with wallet and lines and in the order of the placements, which must be balanced
-- then. status_key is the index that the room leaves.
local function finish_room(publish, events_key, status_key, finished_key, due_key, ledger_key, first, last, seq, nonce,
  now_ms, now, version, token, decimals, entry, pot, rake, placements, room_id, visibility, keep_ms, events_ms)
  if entry ~= '0' then
    pay_out(publish, ledger_key, first, nonce, now, token, decimals, entry, pot, rake, placements, room_id)
  else
    for i = first, last do redis.call('ZREM', KEYS[i], room_id) end
  end
  emit_event(publish, events_key, seq, nonce, now, 'room.finished',
    version .. '|' .. decimals .. '|' .. rake .. '|' .. placements)
  close_room(status_key, finished_key, nil, due_key, visibility, room_id, now_ms, keep_ms, events_ms)
end
