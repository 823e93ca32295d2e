-- room_leave: takes a player out before the start and gives the stake back; forfeits the seat after it; ends a room that is
-- left to nobody, or a paid one that is left to one; or changes nothing.
-- INCLUDES clock amounts balance receipt event marks seats players stake refund payout remove_seat start_room end_room
-- KEYS  1 room 2 events 3 open 4 created 5 started 6 finished 7 cancelled 8 due, ledger of a paid room, then the players'
--       keys (see lib_players), receipt of a keyed call
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl_ms 5 user 6 game 7 room_id 8 users 9 placements 10 rake 11 version that they were
--       computed for (what the last one left over gets; '' when not known yet)
-- RETURNS ok replay stale idempotency_key_reused room_not_found room_closed not_participant
-- INVARIANT the pot is the sum of the stakes; payouts and rake are the pot exactly
local room_key, events_key, open_key, created_key, started_key, finished_key, cancelled_key, due_key = unpack(KEYS, 1, 8)
local publish, nonce, fingerprint, ttl_ms, user, caller_game = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local room_id, users, placements, rake, computed_for = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
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
local entry, token, decimals, max_players, game, visibility, auto_start, min_players, match_ms, keep_ms = string.match(fields[1],
  PATTERN(room_settings: entry token decimals max_players game visibility auto_start min_players match_ms keep_ms))
local status, version, seq, _, pot, active, reserved, ready, host =
  string.match(fields[2], PATTERN(room_live: status version seq nonce pot active reserved ready host))
if game ~= caller_game then return refuse('room_not_found', nonce) end
if is_resend(marks, nonce) then return 'ok' end
if visibility == 'private' and not seat then return refuse('room_not_found', nonce) end
if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end
local state, was_ready, stake, profile = string.match(seat or '', PATTERN(room_seat: state ready stake profile))
if not state or state == 'forfeited' then return refuse('not_participant', nonce) end
local paid, was_active = entry ~= '0', state == 'active'
local remaining = tonumber(active) - (was_active and 1 or 0)
local is_empty = remaining == 0
local is_won = paid and status == 'STARTED' and remaining == 1
local keys_of = collect_player_keys(users, paid and 10 or 9, paid)
if not keys_of[user] then return {'stale', nonce} end
local seats
if is_empty or is_won or user == host then
  seats = read_seats(room_key)
  if is_empty and not has_all_players(seats, keys_of) then return {'stale', nonce} end
  if is_won and (version ~= computed_for or not is_balanced(placements, rake, pot, entry)) then return {'stale', nonce} end
end

local now_ms, now = read_clock()
local changed = now
version, seq, active = string.format('%d', version + 1), string.format('%d', seq + 1), string.format('%d', remaining)
local reason = 'left'
if status == 'STARTED' then
  reason = 'forfeited'
  redis.call('HSET', room_key, seat_field, 'forfeited' .. string.match(seat, '(|.*)$'))
else
  pot = remove_seat(publish, room_key, keys_of[user], KEYS[9], nonce, now, user, stake, token, decimals, pot, room_id)
  if was_ready == '1' then ready = string.format('%d', ready - 1) end
  if not was_active then reserved = string.format('%d', reserved - 1) end
end
emit_event(publish, events_key, seq, nonce, now, 'room.left',
  version .. '|' .. user .. '|' .. reason .. '|' .. active .. '|' .. pot .. '|' .. decimals)
if user == host then
  local next_host = find_host(seats, user)
  if next_host then
    host, seq = next_host, string.format('%d', seq + 1)
    emit_event(publish, events_key, seq, nonce, now, 'room.host_changed', version .. '|' .. host)
  else
    redis.call('HSET', room_key, 'host_profile', profile) -- the last host of an empty room stays its host
  end
end
if is_empty then
  local status_key = status == 'CREATED' and created_key or started_key
  if status == 'CREATED' then -- the seat that was given up is paid back already
    for i = #seats, 1, -1 do if seats[i].user == user then table.remove(seats, i) end end
  end
  local refunds = refund_seats(publish, seats, keys_of, KEYS[9], nonce, now, token, decimals, pot, room_id)
  status, seq = 'CANCELLED', string.format('%d', seq + 1)
  emit_event(publish, events_key, seq, nonce, now, 'room.cancelled', version .. '|' .. decimals .. '|empty|' .. refunds)
  close_room(status_key, cancelled_key, open_key, due_key, visibility, room_id, now_ms + keep_ms)
  redis.call('HSET', room_key, 'finished', now, 'reason', 'empty', 'refunds', refunds)
elseif is_won then
  pay_out(publish, 10, nonce, now, token, decimals, entry, pot, rake, placements, room_id)
  status, seq = 'FINISHED', string.format('%d', seq + 1)
  emit_event(publish, events_key, seq, nonce, now, 'room.finished', version .. '|' .. decimals .. '|' .. rake .. '|' .. placements)
  close_room(started_key, finished_key, open_key, due_key, visibility, room_id, now_ms + keep_ms)
  redis.call('HSET', room_key, 'finished', now, 'placements', placements, 'rake', rake)
elseif status == 'CREATED' then
  if auto_start == '1' and ready == active and remaining >= tonumber(min_players) then
    status, seq = 'STARTED', string.format('%d', seq + 1)
    drop_reserved(room_key, reserved)
    reserved = '0'
    start_room(open_key, created_key, started_key, due_key, visibility, room_id, now_ms + match_ms)
    emit_event(publish, events_key, seq, nonce, now, 'room.started', version .. '|auto')
    redis.call('HSET', room_key, 'started', now)
  elseif visibility == 'public' and remaining + reserved + 1 == tonumber(max_players) then
    redis.call('ZADD', open_key, '0', room_id)
  end
end
if receipt_key then
  redis.call('HSET', room_key, 'live', PACK(room_live))
  save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce})
else
  redis.call('HSET', room_key, 'live', PACK(room_live), 'marks', add_mark(marks, nonce))
end
return 'ok'
