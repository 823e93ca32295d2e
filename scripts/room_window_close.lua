-- room_window_close: ends the window of a room that is settled by consensus: who was there and said
-- nothing agrees with the reports, which finish the room; else the pot is frozen; or changes
-- nothing.
-- INCLUDES  clock skewed_clock amounts balance count_stake event seats payout end_room finish_room
--           report_window dispute_room
-- FLAGS     allow-oom
-- KEYS      1 room  2 events  3 started  4 finished  5 disputed  6 due  then the ledger of a paid
--           room, player_rooms of each seat, in a paid room with wallet and lines and in the order
--           of the placements, and the outbox of a room with feeds
-- ARGV      1 publish  2 nonce  3 room_id  4 outcome: finish; dispute when silence may not agree;
--           open when nobody who stayed made a report  5 placements: one for each seat of a paid
--           room  6 rake  7 computed_for: version for which these were computed  8 dispute_ms: how
--           long a dispute may last, unless the room has its own time  9 events_ms: how long the
--           events outlive the room  10 node_ms: the time of the node
-- LEDGER    if the room is finished
-- RETURNS   ok stale
-- INVARIANT no window ends before its time by the store's clock, and none ends twice; payouts and
--           rake are the pot exactly; who was not connected in the whole window agrees to nothing;
--           a disputed room keeps every stake
-- Stale means that the room has changed since it was read; with "clock", that the clocks of store
-- and node differ. A room without a window, and one whose window runs, stay as they are: ok.
local fields = redis.call('HMGET', room_key, 'settings', 'live', 'window', 'dispute_ms', 'started')
local settings, window = fields[1], fields[3]
if not settings or not window then return {'ok', nonce} end
UNPACK(settings, room_settings: entry token decimals game visibility match_ms keep_ms feeds)
UNPACK(fields[2], room_live without nonce changed)
if status ~= 'STARTED' then return {'ok', nonce} end
UNPACK(window, room_window)
local now_ms, now = read_clock()
if is_skewed(now_ms, node_ms) then return {'stale', 'clock'} end
if now_ms < tonumber(window_ends) then
  redis.call('ZADD', due_key, window_ends, room_id)
  return {'ok', nonce}
end
if version ~= computed_for then return {'stale', nonce} end
if outcome == 'open' then
  redis.call('HDEL', room_key, 'window')
  redis.call('ZADD', due_key, string.format('%d', fields[5] + match_ms), room_id)
  return {'ok', nonce}
end
local seats = read_seats(room_key)
for _, seat in ipairs(seats) do
  local is_silent = seat.state == 'active' and redis.call('HEXISTS', room_key, 'r' .. seat.user) == 0
  if is_silent and was_absent(room_key, seat, absent) then outcome = 'dispute' end
end
local paid, last_key, outbox_key = entry ~= '0', #KEYS, nil
if feeds ~= '' then outbox_key, last_key = KEYS[last_key], last_key - 1 end
local first_player = paid and NEXT_KEY + 1 or NEXT_KEY
local ledger_key = paid and KEYS[first_player - 1]
local payouts
if outcome == 'finish' then
  payouts = paid and read_payouts(placements, rake, pot, entry, (last_key - first_player + 1) / 3)
  if placements == '' or paid and not payouts then return {'stale', nonce} end
end
reject_strings(1, #KEYS)

local changed = now
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
if outcome == 'finish' then
  status = 'FINISHED'
  finish_room(publish, events_key, started_key, finished_key, due_key, ledger_key, first_player, last_key, seq,
    nonce, now_ms, now, version, token, decimals, entry, pot, rake, placements, payouts, room_id, visibility, keep_ms,
    events_ms)
  redis.call('HSET', room_key, 'live', PACK(room_live), 'finished', now, 'placements', placements, 'rake', rake)
  if outbox_key then
    add_to_outbox(outbox_key, room_key, room_id, now, game, feeds, status, '', decimals, placements)
  end
  if paid then return 'ok' end
else
  status = 'DISPUTED'
  dispute_room(publish, room_key, events_key, started_key, disputed_key, due_key, seq, nonce, now_ms, now, version,
    room_id, visibility, fields[4] or dispute_ms)
  redis.call('HSET', room_key, 'live', PACK(room_live))
end
return {'ok', nonce}
