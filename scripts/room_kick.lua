-- room_kick: takes a player out before the start, gives the stake back and perhaps bars the way back; or changes nothing.
-- INCLUDES clock amounts balance receipt event marks seats players stake refund remove_seat start_room end_room
-- KEYS  1 room 2 events 3 open 4 created 5 started 6 cancelled 7 due, ledger of a paid room, then the target's keys (see
--       lib_players), receipt of a keyed call
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl_ms 5 user ('' for the game's server) 6 game 7 room_id 8 target 9 ban
-- RETURNS ok replay idempotency_key_reused room_not_found room_closed not_host already_started not_participant limit_reached
-- INVARIANT the pot is the sum of the stakes; a room bars at most 256 players
local room_key, events_key, open_key, created_key, started_key, cancelled_key, due_key = unpack(KEYS, 1, 7)
local publish, nonce, fingerprint, ttl_ms, user, caller_game = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local room_id, target, ban = ARGV[7], ARGV[8], ARGV[9]
local receipt_key = fingerprint ~= '' and KEYS[#KEYS]

if receipt_key then
  local first = find_receipt(receipt_key, fingerprint)
  if first then return first end
end
local function refuse(...) return save_receipt(receipt_key, fingerprint, ttl_ms, {...}) end

local fields = redis.call('HMGET', room_key, 'settings', 'live', 'marks', 's' .. user, 's' .. target, 'bans')
local marks, seat, bans = fields[3], fields[5], fields[6] or '0'
if not fields[1] then return refuse('room_not_found', nonce) end
local entry, token, decimals, max_players, game, visibility, auto_start, min_players, match_ms, keep_ms = string.match(fields[1],
  PATTERN(room_settings: entry token decimals max_players game visibility auto_start min_players match_ms keep_ms))
local status, version, seq, _, pot, active, reserved, ready, host =
  string.match(fields[2], PATTERN(room_live: status version seq nonce pot active reserved ready host))
if game ~= caller_game then return refuse('room_not_found', nonce) end
if is_resend(marks, nonce) then return 'ok' end
if visibility == 'private' and user ~= '' and not fields[4] then return refuse('room_not_found', nonce) end
if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end
if user ~= '' and user ~= host then return refuse('not_host', nonce) end
if status ~= 'CREATED' then return refuse('already_started', nonce) end
local state, was_ready, stake, profile = string.match(seat or '', PATTERN(room_seat: state ready stake profile))
if not state then return refuse('not_participant', nonce) end
if ban == '1' and tonumber(bans) >= 256 then return refuse('limit_reached', nonce, '256') end
local paid = entry ~= '0'
local keys_of = collect_player_keys(target, paid and 9 or 8, paid)

local now_ms, now = read_clock()
local changed = now
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
pot = remove_seat(publish, room_key, keys_of[target], KEYS[8], nonce, now, target, stake, token, decimals, pot, room_id)
if was_ready == '1' then ready = string.format('%d', ready - 1) end
if state == 'active' then active = string.format('%d', active - 1) else reserved = string.format('%d', reserved - 1) end
if ban == '1' then redis.call('HSET', room_key, 'b' .. target, '1', 'bans', string.format('%d', bans + 1)) end
emit_event(publish, events_key, seq, nonce, now, 'room.left', version .. '|' .. target .. '|' ..
  (ban == '1' and 'banned' or 'kicked') .. '|' .. active .. '|' .. pot .. '|' .. decimals)
if target == host then
  local next_host = find_host(read_seats(room_key), target)
  if next_host then
    host, seq = next_host, string.format('%d', seq + 1)
    emit_event(publish, events_key, seq, nonce, now, 'room.host_changed', version .. '|' .. host)
  else
    redis.call('HSET', room_key, 'host_profile', profile) -- the last host of an empty room stays its host
  end
end
if active == '0' then
  local keys_left = read_seats(room_key)
  for _, held in ipairs(keys_left) do redis.call('HDEL', room_key, 's' .. held.user) end
  reserved = '0'
  status, seq = 'CANCELLED', string.format('%d', seq + 1)
  emit_event(publish, events_key, seq, nonce, now, 'room.cancelled', version .. '|' .. decimals .. '|empty|')
  close_room(created_key, cancelled_key, open_key, due_key, visibility, room_id, now_ms + keep_ms)
  redis.call('HSET', room_key, 'finished', now, 'reason', 'empty', 'refunds', '')
elseif auto_start == '1' and ready == active and tonumber(active) >= tonumber(min_players) then
  status, seq = 'STARTED', string.format('%d', seq + 1)
  drop_reserved(room_key, reserved)
  reserved = '0'
  start_room(open_key, created_key, started_key, due_key, visibility, room_id, now_ms + match_ms)
  emit_event(publish, events_key, seq, nonce, now, 'room.started', version .. '|auto')
  redis.call('HSET', room_key, 'started', now)
elseif visibility == 'public' and active + reserved + 1 == tonumber(max_players) then
  redis.call('ZADD', open_key, '0', room_id)
end
redis.call('HSET', room_key, 'live', PACK(room_live))
if receipt_key then return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce}) end
redis.call('HSET', room_key, 'marks', add_mark(marks, nonce))
return 'ok'
