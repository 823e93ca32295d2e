-- room_report: stores what a player of a room that is settled by consensus saw, ends the room with
-- it when the players agree, and freezes the pot when they do not; or changes nothing.
-- INCLUDES  clock amounts balance count_stake receipt call event seats payout end_room finish_room
--           report_window dispute_room
-- FLAGS     allow-oom
-- KEYS      1 room  2 events  3 started  4 finished  5 disputed  6 due  then the ledger of a paid
--           room, player_rooms of each seat, in a paid room with wallet and lines and in the order
--           of the placements, and the outbox of a room with feeds
-- ARGV      4 publish  5 user  6 caller_game: game  7 room_id  8 effect: what the report must do:
--           add, agree, concede, contradict, repeat or conflict; '' when it names other players
--           than the room has  9 seen: "<status>|<active seats>" of the room for which the effect
--           was found  10 compared: user with whose report it was compared, '' for none  11 report:
--           as it is stored  12 placements: one for each seat of a paid room  13 rake
--           14 dispute_ms: how long a dispute may last, unless the room has its own time
--           15 events_ms: how long the events outlive the room  16 window_ms: how long the others
--           may report after the first report
-- LEDGER    if the report ends the room
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed not_started
--           not_participant result_conflict
-- INVARIANT the active players of a started room have reported the same places; a player has one
--           report, which never changes; payouts and rake are the pot exactly; a disputed room
--           keeps every stake; a window begins with the first report of those who are still there,
--           and no report after its end counts before room_window_close has ended it
-- A report never changes, nor do the seats of a started room but for those that are forfeited: so
-- what the caller found by comparing stays true while as many seats are active. Stale with "window"
-- means that the window is over: room_window_close comes first.
local report_field = 'r' .. user
local fields = redis.call('HMGET', room_key, 'settings', 'live', 's' .. user, report_field, 'window', 'dispute_ms')
local settings, seat = fields[1], fields[3]
if not settings then return refuse('room_not_found', nonce) end
UNPACK(settings, room_settings: entry token decimals game visibility keep_ms feeds)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game then return refuse('room_not_found', nonce) end
if visibility == 'private' and not seat then return refuse('room_not_found', nonce) end
if status == 'CANCELLED' then return refuse('room_closed', nonce) end
if status == 'CREATED' then return refuse('not_started', nonce) end
if not seat or string.byte(seat) ~= 97 then return refuse('not_participant', nonce) end -- not "active"
if report ~= '' and fields[4] == report then return refuse('ok', nonce) end -- also a resend
if effect == '' or seen ~= status .. '|' .. active then return {'stale', nonce} end
if status == 'FINISHED' or fields[4] then
  if effect == 'repeat' then return refuse('ok', nonce) end
  if effect == 'conflict' then return refuse('result_conflict', nonce) end
  return {'stale', nonce} -- found before this player's report was there
end
local paid, last_key, outbox_key = entry ~= '0', #KEYS - (receipt_key and 1 or 0)
if feeds ~= '' then outbox_key, last_key = KEYS[last_key], last_key - 1 end
local first_player = paid and NEXT_KEY + 1 or NEXT_KEY
local ledger_key = paid and KEYS[first_player - 1]
local payouts, ends, seats, window_ends = nil, effect == 'agree' or effect == 'concede'
local now_ms, now = read_clock()
if status == 'STARTED' then
  window_ends = fields[5] and string.match(fields[5], PATTERN(room_window: window_ends))
  if window_ends and now_ms >= tonumber(window_ends) then return {'stale', nonce, 'window'} end
  local reports, is_compared = 1, compared == ''
  seats = read_seats(room_key)
  for _, other in ipairs(seats) do
    if other.state == 'active' and redis.call('HEXISTS', room_key, 'r' .. other.user) == 1 then
      reports = reports + 1
      if compared == '' then return {'stale', nonce} end
      is_compared = is_compared or other.user == compared
    end
  end
  local is_last = reports == tonumber(active)
  if not is_compared or effect == 'add' and is_last or effect == 'agree' and not is_last then
    return {'stale', nonce}
  end
  if ends then
    payouts = paid and read_payouts(placements, rake, pot, entry, (last_key - first_player + 1) / 3)
    if paid and not payouts then return {'stale', nonce} end
    reject_strings(1, last_key + (outbox_key and 1 or 0))
  end
  if reports == 1 then window_ends = nil end -- whoever reported before has left
end

local changed = now
local opens = effect == 'add' and seats and not window_ends
if opens then window_ends = string.format('%d', now_ms + window_ms) end
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
emit_event(publish, events_key, seq, nonce, now, 'room.result',
  version .. '|' .. user .. '|' .. (effect == 'add' and window_ends or ''))
if ends then
  status, seq = 'FINISHED', string.format('%d', seq + 1)
  finish_room(publish, events_key, started_key, finished_key, due_key, ledger_key, first_player, last_key, seq,
    nonce, now_ms, now, version, token, decimals, entry, pot, rake, placements, payouts, room_id, visibility, keep_ms,
    events_ms)
  redis.call('HSET', room_key, 'finished', now, 'placements', placements, 'rake', rake)
  if outbox_key then
    add_to_outbox(outbox_key, room_key, room_id, now, game, feeds, status, '', decimals, placements)
  end
elseif effect == 'contradict' then
  status, seq = 'DISPUTED', string.format('%d', seq + 1)
  dispute_room(publish, room_key, events_key, started_key, disputed_key, due_key, seq, nonce, now_ms, now, version,
    room_id, visibility, fields[6] or dispute_ms)
elseif opens then
  local absent = list_absent(room_key, seats, user)
  redis.call('ZADD', due_key, window_ends, room_id)
  redis.call('HSET', room_key, 'window', PACK(room_window))
end
redis.call('HSET', room_key, 'live', PACK(room_live), report_field, report)
redis.call('HINCRBY', room_key, 'reports', '1')
if receipt_key then save_success(receipt_key, fingerprint, ttl_ms, nonce) end
if ends and paid then return 'ok' end
return {'ok', nonce}
