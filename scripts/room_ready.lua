-- room_ready: records that a player is ready, or no longer ready; or changes nothing.
-- INCLUDES  clock receipt event marks save_change seats players start_room drop_reserved
-- KEYS      1 room  2 events  3 open  4 created  5 started  6 due  then player_rooms of each of the
--           users, and the receipt of a call with a key
-- ARGV      1 publish  2 nonce  3 fingerprint  4 ttl_ms  5 user  6 game  7 room id  8 ready: 1 or 0
--           9 ids of the users with a reserved seat, which a start removes ('' when not known yet)
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed already_started
--           not_participant
-- INVARIANT live counts the players who are ready and has the position of the last event; an index
--           names a room exactly while it is so
local room_key, events_key, open_key, created_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local started_key, due_key = KEYS[5], KEYS[6]
local publish, nonce, fingerprint, ttl_ms, user, caller_game = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local room_id, is_ready, users = ARGV[7], ARGV[8], ARGV[9]
local receipt_key = fingerprint ~= '' and KEYS[#KEYS]

if receipt_key then
  local first = find_receipt(receipt_key, fingerprint)
  if first then return first end
end
local function refuse(...) return save_receipt(receipt_key, fingerprint, ttl_ms, {...}) end

local seat_field = 's' .. user
local fields = redis.call('HMGET', room_key, 'settings', 'live', seat_field, 'marks')
local settings, seat, marks = fields[1], fields[3], fields[4]
if not settings then return refuse('room_not_found', nonce) end
local max_players, game, visibility, auto_start, min_players, match_ms =
  string.match(settings, PATTERN(room_settings: max_players game visibility auto_start min_players match_ms))
local status, version, seq, _, pot, active, reserved, ready, host =
  string.match(fields[2], PATTERN(room_live: status version seq nonce pot active reserved ready host))
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
  seats, keys_of = read_seats(room_key), collect_player_keys(users, 7, false)
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
