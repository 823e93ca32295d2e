-- room_cancel: ends a room without a result and gives every stake back, or changes nothing.
-- INCLUDES  clock amounts balance count_stake receipt call event marks save_change seats players
--           stake refund end_room
-- FLAGS     allow-oom
-- KEYS      1 room  2 events  3 open  4 created  5 started: or disputed of a room that was read as
--           disputed  6 cancelled  7 due  then the ledger of a paid room, player_rooms of each of
--           the users, in a paid room with wallet and lines, and the outbox of a room with feeds
-- ARGV      4 publish  5 user: '' for server and operator  6 caller_game: game  7 room_id  8 users:
--           ids of the users whose keys are given  9 reason: host server operator tournament
--           no_show  10 events_ms: how long the events outlive the room  11 was_disputed: 1 when
--           the room was read as disputed
-- LEDGER    if a stake goes back
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed not_host
--           already_started forbidden
-- INVARIANT every stake is returned in full; no stake stays held; an index names a room exactly
--           while it is so
local fields = redis.call('HMGET', room_key, 'settings', 'live', 's' .. user, 'marks')
local settings, marks = fields[1], fields[4]
if not settings then return refuse('room_not_found', nonce) end
UNPACK(settings, room_settings: entry token decimals game visibility keep_ms feeds)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game then return refuse('room_not_found', nonce) end
if is_resend(marks, nonce) then return {'ok', nonce} end
if visibility == 'private' and user ~= '' and not fields[3] then return refuse('room_not_found', nonce) end
if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end
if user ~= '' and user ~= host then return refuse('not_host', nonce) end
if user ~= '' and string.byte(feeds) == 116 then return refuse('forbidden', nonce) end -- "t.": a match
local is_open, is_disputed = status == 'CREATED', status == 'DISPUTED'
if user ~= '' and not is_open then return refuse('already_started', nonce) end
if is_disputed and was_disputed ~= '1' then return {'stale', nonce} end
local paid = entry ~= '0'
local first_player = paid and NEXT_KEY + 1 or NEXT_KEY
local ledger_key = paid and KEYS[first_player - 1]
local keys_of, seats = collect_player_keys(users, first_player, paid), read_seats(room_key)
if not has_all_players(seats, keys_of) then return {'stale', nonce} end
reject_strings(1, #KEYS - (receipt_key and 1 or 0))

local now_ms, now = read_clock()
local changed = now
status, version, seq = 'CANCELLED', string.format('%d', version + 1), string.format('%d', seq + 1)
local refunds = refund_seats(publish, seats, keys_of, ledger_key, nonce, now, token, decimals, pot, room_id)
emit_event(publish, events_key, seq, nonce, now, 'room.cancelled',
  version .. '|' .. decimals .. '|' .. reason .. '|' .. refunds)
close_room(is_open and created_key or started_key, cancelled_key, is_open and open_key, due_key, visibility, room_id,
  now_ms, keep_ms, events_ms)
if is_disputed then redis.call('ZREM', started_key, room_id) end -- it lists rooms that are not public too
save_change(room_key, receipt_key, fingerprint, ttl_ms, nonce, marks, 'live', PACK(room_live), 'finished', now,
  'reason', reason, 'refunds', refunds)
if feeds ~= '' then
  add_to_outbox(KEYS[#KEYS - (receipt_key and 1 or 0)], room_key, room_id, now, game, feeds, status, reason, decimals,
    '')
end
if refunds ~= '' then return 'ok' end
return {'ok', nonce}
