-- room_ready: records that a player is ready, or no longer ready; or changes nothing.
-- INCLUDES  clock receipt call event marks save_change seats players start_room drop_reserved
-- KEYS      1 room  2 events  3 open  4 created  5 started  6 due  then player_rooms of each of the
--           users
-- ARGV      4 publish  5 user  6 caller_game: game  7 room_id  8 is_ready: ready, 1 or 0  9 users:
--           ids of the users with a reserved seat, which a start removes ('' when not known yet)
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed already_started
--           not_participant
-- INVARIANT live counts the players who are ready and has the position of the last event; an index
--           names a room exactly while it is so
local seat_field = 's' .. user
local fields = redis.call('HMGET', room_key, 'settings', 'live', seat_field, 'marks')
local settings, seat, marks = fields[1], fields[3], fields[4]
if not settings then return refuse('room_not_found', nonce) end
UNPACK(settings, room_settings: max_players game visibility auto_start min_players match_ms)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game then return refuse('room_not_found', nonce) end
if is_resend(marks, nonce) then return 'ok' end
if visibility == 'private' and not seat then return refuse('room_not_found', nonce) end
if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end
if not seat or string.byte(seat) ~= 97 then return refuse('not_participant', nonce) end -- not "active"
if status ~= 'CREATED' then return refuse('already_started', nonce) end
local was_ready, rest = string.match(seat, '^active|(%d)(.*)$')
if was_ready == is_ready then return refuse('ok', nonce) end
ready = string.format('%d', ready + (is_ready == '1' and 1 or -1))
local starts = auto_start == '1' and
  (active == max_players or ready == active and tonumber(active) >= tonumber(min_players))
local seats, keys_of
if starts and reserved ~= '0' then
  seats, keys_of = read_seats(room_key), collect_player_keys(users, NEXT_KEY, false)
  if not has_all_players(seats, keys_of, 'reserved') then return {'stale', nonce} end
end

local now_ms, now = read_clock()
local changed = now
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
emit_event(publish, events_key, seq, nonce, now, 'room.ready', version .. '|' .. user .. '|' .. is_ready)
if starts then
  if seats then drop_reserved(room_key, seats, keys_of, room_id) end
  status, reserved, seq = 'STARTED', '0', string.format('%d', seq + 1)
  start_room(publish, events_key, open_key, created_key, started_key, due_key, seq, nonce, now, version, 'auto',
    visibility, room_id, now_ms + match_ms)
  redis.call('HSET', room_key, 'started', now)
end
save_change(room_key, receipt_key, fingerprint, ttl_ms, nonce, marks, 'live', PACK(room_live), seat_field,
  'active|' .. is_ready .. rest)
return 'ok'
