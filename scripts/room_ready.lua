-- room_ready: notes that a player is ready, or no longer; or changes nothing.
-- INCLUDES clock receipt event marks start_room
-- KEYS  1 room 2 events 3 open 4 created 5 started 6 due, receipt of a keyed call
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl_ms 5 user 6 game 7 room_id 8 ready
-- RETURNS ok replay idempotency_key_reused room_not_found room_closed already_started not_participant
-- INVARIANT live counts the players who are ready; it has the position of the last event
local room_key, events_key, open_key, created_key, started_key, due_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local publish, nonce, fingerprint, ttl_ms, user, caller_game = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local room_id, is_ready = ARGV[7], ARGV[8]
local receipt_key = fingerprint ~= '' and KEYS[#KEYS]

if receipt_key then
  local first = find_receipt(receipt_key, fingerprint)
  if first then return first end
end
local function refuse(...) return save_receipt(receipt_key, fingerprint, ttl_ms, {...}) end

local seat_field = 's' .. user
local fields = redis.call('HMGET', room_key, 'settings', 'live', 'marks', seat_field)
local marks, seat = fields[3], fields[4]
if not fields[1] then return refuse('room_not_found', nonce) end
local max_players, game, visibility, auto_start, min_players, match_ms =
  string.match(fields[1], PATTERN(room_settings: max_players game visibility auto_start min_players match_ms))
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

local now_ms, now = read_clock()
local changed = now
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
ready = string.format('%d', ready + (is_ready == '1' and 1 or -1))
emit_event(publish, events_key, seq, nonce, now, 'room.ready', version .. '|' .. user .. '|' .. is_ready)
local starts = auto_start == '1' and (active == max_players or ready == active and tonumber(active) >= tonumber(min_players))
if starts then
  status, seq = 'STARTED', string.format('%d', seq + 1)
  drop_reserved(room_key, reserved)
  reserved = '0'
  start_room(open_key, created_key, started_key, due_key, visibility, room_id, now_ms + match_ms)
  emit_event(publish, events_key, seq, nonce, now, 'room.started', version .. '|auto')
  redis.call('HSET', room_key, 'started', now)
end
redis.call('HSET', room_key, 'live', PACK(room_live), seat_field, 'active|' .. is_ready .. rest)
if receipt_key then return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce}) end
redis.call('HSET', room_key, 'marks', add_mark(marks, nonce))
return 'ok'
