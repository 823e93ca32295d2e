-- room_start: starts the game and locks the stakes, or changes nothing.
-- INCLUDES  clock receipt event marks save_change seats players start_room drop_reserved
-- KEYS      1 room  2 events  3 open  4 created  5 started  6 due  then player_rooms of each of the
--           users, and the receipt of a call with a key
-- ARGV      1 publish  2 nonce  3 fingerprint  4 ttl_ms  5 user ('' for the game's server)  6 game
--           7 room id  8 ids of the users with a reserved seat, which the start removes ('' when
--           not known yet)
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed not_host
--           already_started not_enough_players
-- INVARIANT live has the position of the last event; an index names a room exactly while it is so
local room_key, events_key, open_key, created_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local started_key, due_key = KEYS[5], KEYS[6]
local publish, nonce, fingerprint, ttl_ms, user, caller_game = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local room_id, users = ARGV[7], ARGV[8]
local receipt_key = fingerprint ~= '' and KEYS[#KEYS]

if receipt_key then
  local first = find_receipt(receipt_key, fingerprint)
  if first then return first end
end
local function refuse(...) return save_receipt(receipt_key, fingerprint, ttl_ms, {...}) end

local fields = redis.call('HMGET', room_key, 'settings', 'live', 's' .. user, 'marks')
local settings, marks = fields[1], fields[4]
if not settings then return refuse('room_not_found', nonce) end
local game, visibility, min_players, match_ms =
  string.match(settings, PATTERN(room_settings: game visibility min_players match_ms))
local status, version, seq, _, pot, active, reserved, ready, host =
  string.match(fields[2], PATTERN(room_live: status version seq nonce pot active reserved ready host))
if game ~= caller_game then return refuse('room_not_found', nonce) end
if is_resend(marks, nonce) then return 'ok' end
if visibility == 'private' and user ~= '' and not fields[3] then return refuse('room_not_found', nonce) end
if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end
if user ~= '' and user ~= host then return refuse('not_host', nonce) end
if status ~= 'CREATED' then return refuse('already_started', nonce) end
if tonumber(active) < tonumber(min_players) then return refuse('not_enough_players', nonce, active, min_players) end
local seats, keys_of
if reserved ~= '0' then
  seats, keys_of = read_seats(room_key), collect_player_keys(users, 7, false)
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
