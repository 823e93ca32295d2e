-- room_start: starts the game and locks the stakes, or changes nothing.
-- INCLUDES  clock receipt call event marks save_change seats players start_room drop_reserved
-- KEYS      1 room  2 events  3 open  4 created  5 started  6 due  then player_rooms of each of the
--           users
-- ARGV      4 publish  5 user: '' for the game's server  6 caller_game: game  7 room_id  8 users:
--           ids of the users with a reserved seat, which the start removes ('' when not known yet)
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed not_host
--           already_started not_enough_players
-- INVARIANT live has the position of the last event; an index names a room exactly while it is so
local fields = redis.call('HMGET', room_key, 'settings', 'live', 's' .. user, 'marks')
local settings, marks = fields[1], fields[4]
if not settings then return refuse('room_not_found', nonce) end
UNPACK(settings, room_settings: game visibility min_players match_ms)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game then return refuse('room_not_found', nonce) end
if is_resend(marks, nonce) then return 'ok' end
if visibility == 'private' and user ~= '' and not fields[3] then return refuse('room_not_found', nonce) end
if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end
if user ~= '' and user ~= host then return refuse('not_host', nonce) end
if status ~= 'CREATED' then return refuse('already_started', nonce) end
if tonumber(active) < tonumber(min_players) then return refuse('not_enough_players', nonce, active, min_players) end
local seats, keys_of
if reserved ~= '0' then
  seats, keys_of = read_seats(room_key), collect_player_keys(users, NEXT_KEY, false)
  if not has_all_players(seats, keys_of, 'reserved') then return {'stale', nonce} end
end

local now_ms, now = read_clock()
local changed = now
if seats then drop_reserved(room_key, seats, keys_of, room_id) end
status, reserved = 'STARTED', '0'
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
start_room(publish, events_key, open_key, created_key, started_key, due_key, seq, nonce, now, version,
  user ~= '' and 'host' or 'server', visibility, room_id, now_ms + match_ms)
save_change(room_key, receipt_key, fingerprint, ttl_ms, nonce, marks, 'live', PACK(room_live), 'started', now)
return 'ok'
