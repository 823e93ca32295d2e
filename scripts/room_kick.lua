-- room_kick: takes a player out before the start, gives the stake back and may ban the player; or
-- changes nothing.
-- INCLUDES  clock amounts balance count_stake receipt call event marks save_change seats pass_host
--           players stake remove_seat start_room drop_reserved end_room
-- FLAGS     allow-oom
-- KEYS      1 room  2 events  3 open  4 created  5 started  6 cancelled  7 due  then the ledger of
--           a paid room, player_rooms of each of the users, in a paid room with wallet and lines,
--           and the outbox of a room that was read and has feeds
-- ARGV      4 publish  5 user: '' for the game's server  6 caller_game: game  7 room_id  8 users:
--           ids of the users whose keys are given  9 target  10 ban: 1 or 0  11 events_ms: how long
--           the events outlive the room  12 has_outbox: 1 when its key is given
-- LEDGER    if a stake goes back
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed not_host
--           already_started not_participant limit_reached forbidden
-- INVARIANT the pot is the sum of the stakes; a room has at most 256 bans; live has the position of
--           the last event; an index names a room exactly while it is so
local fields = redis.call('HMGET', room_key, 'settings', 'live', 's' .. user, 's' .. target, 'bans', 'marks')
local settings, seat, bans, marks = fields[1], fields[4], fields[5] or '0', fields[6]
if not settings then return refuse('room_not_found', nonce) end
UNPACK(settings, room_settings: entry token decimals max_players game visibility auto_start min_players
  match_ms keep_ms feeds)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game then return refuse('room_not_found', nonce) end
if is_resend(marks, nonce) then return {'ok', nonce} end
if visibility == 'private' and user ~= '' and not fields[3] then return refuse('room_not_found', nonce) end
if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end
if user ~= '' and user ~= host then return refuse('not_host', nonce) end
if string.byte(feeds) == 116 then return refuse('forbidden', nonce) end -- "t.": a match
if status ~= 'CREATED' then return refuse('already_started', nonce) end
if not seat then return refuse('not_participant', nonce) end
if ban == '1' and tonumber(bans) >= 256 then return refuse('limit_reached', nonce, '256') end
local state, was_ready, stake, profile = string.match(seat, PATTERN(room_seat: state ready stake profile))
if was_ready == '1' then ready = string.format('%d', ready - 1) end
if state == 'active' then
  active = string.format('%d', active - 1)
else
  reserved = string.format('%d', reserved - 1)
end
local paid, is_empty = entry ~= '0', active == '0'
local starts = not is_empty and auto_start == '1' and ready == active and tonumber(active) >= tonumber(min_players)
local first_player = paid and NEXT_KEY + 1 or NEXT_KEY
local ledger_key = paid and KEYS[first_player - 1]
local keys_of = collect_player_keys(users, first_player, paid)
if not keys_of[target] or is_empty and feeds ~= '' and has_outbox ~= '1' then return {'stale', nonce} end
local seats
if is_empty or target == host or starts and reserved ~= '0' then
  seats = read_seats(room_key)
  if (is_empty or starts) and not has_all_players(seats, keys_of, 'reserved') then return {'stale', nonce} end
end
reject_strings(1, #KEYS - (receipt_key and 1 or 0))

local now_ms, now = read_clock()
local changed = now
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
pot = remove_seat(publish, room_key, keys_of[target], ledger_key, nonce, now, target, stake, token, decimals, pot,
  room_id)
if ban == '1' then redis.call('HSET', room_key, 'b' .. target, '1', 'bans', string.format('%d', bans + 1)) end
emit_event(publish, events_key, seq, nonce, now, 'room.left', version .. '|' .. target .. '|' ..
  (ban == '1' and 'banned' or 'kicked') .. '|' .. active .. '|' .. pot .. '|' .. decimals)
if target == host then
  host, seq = pass_host(publish, room_key, events_key, seq, nonce, now, version, seats, host, profile)
end
if is_empty then -- what is left are reserved seats, without stakes
  for _, held in ipairs(seats) do redis.call('ZREM', keys_of[held.user][1], room_id) end
  status, seq = 'CANCELLED', string.format('%d', seq + 1)
  emit_event(publish, events_key, seq, nonce, now, 'room.cancelled', version .. '|' .. decimals .. '|empty|')
  close_room(created_key, cancelled_key, open_key, due_key, visibility, room_id, now_ms, keep_ms, events_ms)
  redis.call('HSET', room_key, 'finished', now, 'reason', 'empty', 'refunds', '')
elseif starts then
  if reserved ~= '0' then drop_reserved(room_key, seats, keys_of, room_id) end
  status, reserved, seq = 'STARTED', '0', string.format('%d', seq + 1)
  start_room(publish, events_key, open_key, created_key, started_key, due_key, seq, nonce, now, version, 'auto',
    visibility, room_id, now_ms + match_ms)
  redis.call('HSET', room_key, 'started', now)
elseif visibility == 'public' and active + reserved + 1 == tonumber(max_players) then
  redis.call('ZADD', open_key, '0', room_id)
end
save_change(room_key, receipt_key, fingerprint, ttl_ms, nonce, marks, 'live', PACK(room_live))
if is_empty and feeds ~= '' then
  add_to_outbox(KEYS[#KEYS - (receipt_key and 1 or 0)], room_key, room_id, now, game, feeds, status, 'empty', decimals,
    '')
end
if stake ~= '0' then return 'ok' end
return {'ok', nonce}
