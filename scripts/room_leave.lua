-- room_leave: takes a player out before the start and gives the stake back; forfeits the seat after
-- it, and gives the player's turn to the next one; ends a room that is left to nobody, a paid one
-- and a match that are left to one player, and one whose players who are left have all reported the
-- same result; or changes nothing. It also forfeits the seat of a player whose turn is over.
-- INCLUDES  clock skewed_clock amounts balance count_stake receipt call event marks save_change
--           seats pass_host players stake refund payout remove_seat start_room drop_reserved
--           end_room finish_room turn next_player
-- FLAGS     allow-oom
-- KEYS      1 room  2 events  3 open  4 created  5 started  6 finished  7 cancelled  8 due  9 turns
--           then the ledger of a paid room, player_rooms of each of the users, in a paid room with
--           wallet and lines, and the outbox of a room that was read and has feeds
-- ARGV      4 publish  5 user  6 caller_game: game  7 room_id  8 users: ids of the users whose keys
--           are given, in the order of the placements  9 placements: what the players left over get
--           10 rake  11 computed_for: version for which these were computed (0 when not read yet)
--           12 events_ms: how long the events outlive the room  13 over: deadline of the turn that
--           is over ('' for a player who leaves)  14 node_ms: the time of the node
-- LEDGER    if a stake goes back or the pot is paid out
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed not_participant
--           room_disputed
-- INVARIANT the pot is the sum of the stakes; payouts and rake are the pot exactly; live has the
--           position of the last event; an index names a room exactly while it is so; no turn ends
--           before its time by the store's clock; nobody leaves between the end of a window for
--           reports and room_window_close
-- Stale with "clock" means that a turn is not ended, because the clocks of store and node differ.
-- Stale with "window" means that the window for reports is over: room_window_close comes first.
local seat_field = 's' .. user
local fields = redis.call('HMGET', room_key, 'settings', 'live', seat_field, 'marks')
local settings, seat, marks = fields[1], fields[3], fields[4]
if not settings then return refuse('room_not_found', nonce) end
UNPACK(settings, room_settings: entry token decimals max_players game visibility auto_start min_players)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game then return refuse('room_not_found', nonce) end
if is_resend(marks, nonce) then return {'ok', nonce} end
if visibility == 'private' and not seat then return refuse('room_not_found', nonce) end
if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end
local state, was_ready, stake, profile = string.match(seat or '', PATTERN(room_seat: state ready stake profile))
if not state or state == 'forfeited' then return refuse('not_participant', nonce) end
if status == 'DISPUTED' then return refuse('room_disputed', nonce) end
local now_ms, now = read_clock()
if over ~= '' and is_skewed(now_ms, node_ms) then return {'stale', 'clock'} end
local reports, turn, window, turn_user, deadline, seconds, timeout
if status == 'STARTED' then -- only then there may be any
  reports, turn, window = unpack(redis.call('HMGET', room_key, 'reports', 'turn', 'window'))
end
if turn then
  turn_user, deadline, seconds, timeout = string.match(turn, PATTERN(room_turn: turn_user deadline seconds timeout))
end
if over ~= '' and (turn_user ~= user or deadline ~= over or now_ms < tonumber(over)) then return refuse('ok', nonce) end
local window_ends = window and string.match(window, PATTERN(room_window: window_ends))
if window_ends and now_ms >= tonumber(window_ends) then return {'stale', nonce, 'window'} end
local paid, is_open, was_active = entry ~= '0', status == 'CREATED', state == 'active'
local left = tonumber(active) - (was_active and 1 or 0)
if was_ready == '1' and is_open then ready = string.format('%d', ready - 1) end
if not was_active then reserved = string.format('%d', reserved - 1) end
active = string.format('%d', left)
local match_ms, keep_ms, feeds = '', '', ''
if left < 2 or auto_start == '1' or reports then -- else the room neither starts nor ends
  match_ms, keep_ms, feeds = string.match(settings, PATTERN(room_settings: match_ms keep_ms feeds))
end
local is_match = feeds ~= '' and string.byte(feeds) == 116 -- "t."; before its start it ends at its deadline
local is_empty, is_won = left == 0 and not (is_match and is_open), (paid or is_match) and not is_open and left == 1
local starts = is_open and not is_empty and auto_start == '1' and ready == active and left >= tonumber(min_players)
local first_player = paid and NEXT_KEY + 1 or NEXT_KEY
local ledger_key = paid and KEYS[first_player - 1]
local keys_of = collect_player_keys(users, first_player, paid)
if not keys_of[user] then return {'stale', nonce} end
local seats, payouts
if reports and not is_empty and not is_won then
  seats, is_won = read_seats(room_key), true
  for _, other in ipairs(seats) do
    local has_no_say = other.state ~= 'active' or other.user == user
    is_won = is_won and (has_no_say or redis.call('HEXISTS', room_key, 'r' .. other.user) == 1)
  end
end
if is_empty or is_won or user == host or turn_user == user or starts and reserved ~= '0' then
  seats = seats or read_seats(room_key)
  if is_empty and not has_all_players(seats, keys_of) then return {'stale', nonce} end
  if starts and not has_all_players(seats, keys_of, 'reserved') then return {'stale', nonce} end
  if is_won then
    payouts = paid and read_payouts(placements, rake, pot, entry, #seats)
    if version ~= computed_for or not has_all_players(seats, keys_of) or placements == '' or paid and not payouts then
      return {'stale', nonce}
    end
  end
end
local last_key
if is_empty or is_won then
  last_key = #KEYS - (receipt_key and 1 or 0)
  if feeds ~= '' and computed_for == '0' then return {'stale', nonce} end
  reject_strings(1, last_key)
end

local changed = now
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
local reason = 'left'
if is_open then
  pot = remove_seat(publish, room_key, keys_of[user], ledger_key, nonce, now, user, stake, token, decimals, pot,
    room_id)
  for i = #(seats or {}), 1, -1 do
    if seats[i].user == user then table.remove(seats, i) end
  end
else
  reason = 'forfeited'
  redis.call('HSET', room_key, seat_field, 'forfeited' .. string.match(seat, '|.*$'))
end
emit_event(publish, events_key, seq, nonce, now, 'room.left',
  version .. '|' .. user .. '|' .. reason .. '|' .. active .. '|' .. pot .. '|' .. decimals)
if user == host then
  host, seq = pass_host(publish, room_key, events_key, seq, nonce, now, version, seats, host, profile)
end
if is_empty then
  local refunds = refund_seats(publish, seats, keys_of, ledger_key, nonce, now, token, decimals, pot, room_id)
  status, seq = 'CANCELLED', string.format('%d', seq + 1)
  emit_event(publish, events_key, seq, nonce, now, 'room.cancelled',
    version .. '|' .. decimals .. '|empty|' .. refunds)
  close_room(is_open and created_key or started_key, cancelled_key, is_open and open_key, due_key, visibility, room_id,
    now_ms, keep_ms, events_ms)
  redis.call('HSET', room_key, 'finished', now, 'reason', 'empty', 'refunds', refunds)
  if turn then redis.call('ZREM', turns_key, room_id) end
elseif is_won then
  status, seq = 'FINISHED', string.format('%d', seq + 1)
  finish_room(publish, events_key, started_key, finished_key, due_key, ledger_key, first_player,
    feeds ~= '' and last_key - 1 or last_key, seq, nonce, now_ms, now, version, token, decimals, entry, pot, rake,
    placements, payouts, room_id, visibility, keep_ms, events_ms)
  redis.call('HSET', room_key, 'finished', now, 'placements', placements, 'rake', rake)
  if turn then redis.call('ZREM', turns_key, room_id) end
elseif starts then
  if reserved ~= '0' then drop_reserved(room_key, seats, keys_of, room_id) end
  status, reserved, seq = 'STARTED', '0', string.format('%d', seq + 1)
  start_room(publish, events_key, open_key, created_key, started_key, due_key, seq, nonce, now, version, 'auto',
    visibility, room_id, now_ms + match_ms)
  redis.call('HSET', room_key, 'started', now)
elseif turn_user == user then
  seq = string.format('%d', seq + 1)
  give_turn(publish, room_key, events_key, turns_key, seq, nonce, now_ms, now, version, room_id,
    next_player(seats, user), seconds * 1000, seconds, timeout, 'left')
elseif is_open and visibility == 'public' and active + reserved + 1 == tonumber(max_players) then
  redis.call('ZADD', open_key, '0', room_id)
end
save_change(room_key, receipt_key, fingerprint, ttl_ms, nonce, marks, 'live', PACK(room_live))
if feeds ~= '' and (is_empty or is_won) then
  add_to_outbox(KEYS[last_key], room_key, room_id, now, game, feeds, status, is_empty and 'empty' or '', decimals,
    is_won and placements or '')
end
if paid and (is_won or is_open and stake ~= '0' or is_empty and pot ~= '0') then return 'ok' end
return {'ok', nonce}
