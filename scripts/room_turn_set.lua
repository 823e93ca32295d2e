-- room_turn_set: gives a player the turn for some seconds, or ends the turns, or changes nothing.
-- INCLUDES  clock receipt call event marks save_change turn has_stakes
-- KEYS      1 room  2 events  3 turns
-- ARGV      4 publish  5 user: '' for the game's server  6 caller_game: game  7 room_id  8 player:
--           who gets the turn ('' for nobody)  9 seconds  10 timeout: skip or forfeit, what happens
--           at the deadline; a player's turn skips in a room with stakes, and each turn in a match
--           with stakes whose players report the result
-- RETURNS   ok replay idempotency_key_reused room_not_found room_closed not_host room_disputed
--           not_started not_participant forbidden
-- INVARIANT a room with a turn is in turns, with its deadline; live has the position of the last
--           event
local fields = redis.call('HMGET', room_key, 'settings', 'live', 's' .. user, 'marks', 's' .. player, 'turn', 'stakes')
local settings, marks, player_seat, turn = fields[1], fields[4], fields[5], fields[6]
if not settings then return refuse('room_not_found', nonce) end
UNPACK(settings, room_settings: entry game visibility feeds)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game then return refuse('room_not_found', nonce) end
if is_resend(marks, nonce) then return 'ok' end
if visibility == 'private' and user ~= '' and not fields[3] then return refuse('room_not_found', nonce) end
if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end
if user ~= '' and user ~= host then return refuse('not_host', nonce) end
if status == 'DISPUTED' then return refuse('room_disputed', nonce) end
if status ~= 'STARTED' then return refuse('not_started', nonce) end
if player ~= '' and (not player_seat or string.byte(player_seat) ~= 97) then -- not "active"
  return refuse('not_participant', nonce)
end
if player == '' and not turn then return refuse('ok', nonce) end

-- A host who plays for money could take it by giving the others a second, or save its own seat by
-- ending the turn that the game's server has set.
if user ~= '' and has_stakes(fields[7], entry, feeds) then
  if turn and string.match(turn, PATTERN(room_turn: timeout)) == 'forfeit' then return refuse('forbidden', nonce) end
  timeout = 'skip'
end
-- In a match whose players report the result no server decides: a server key could forfeit the
-- seat of whoever plays against a friend.
if timeout == 'forfeit' and string.byte(feeds) == 116 and has_stakes(fields[7], entry, feeds) and
    string.match(redis.call('HGET', room_key, 'document') or '', '^%a*') == 'consensus' then
  timeout = 'skip'
end
local now_ms, now = read_clock()
local changed = now
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
if player ~= '' then
  give_turn(publish, room_key, events_key, turns_key, seq, nonce, now_ms, now, version, room_id, player,
    seconds * 1000, seconds, timeout, 'set')
else
  end_turns(publish, room_key, events_key, turns_key, seq, nonce, now, version, room_id, 'set')
end
save_change(room_key, receipt_key, fingerprint, ttl_ms, nonce, marks, 'live', PACK(room_live))
return 'ok'
