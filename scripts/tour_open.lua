-- tour_open: opens the registration or the check-in of a tournament when it is time by the store's
-- clock, and notes that its added prize is there; or changes nothing.
-- INCLUDES  clock skewed_clock event tour
-- KEYS      1 tour  2 events  3 due  4 fence
-- ARGV      1 publish  2 nonce  3 fence: '' outside of the leader's work  4 tour_id: tournament id
--           5 prize: 1 when the added prize is there  6 node_ms: the time of the node
-- RETURNS   ok stale tournament_not_found
-- INVARIANT registration is open only when the added prize is there; live has the position of the
--           last event
-- Stale means that the leader has a successor, or, with "clock" behind it, that the clocks of store
-- and node differ.
if is_replaced(fence_key, fence) then return {'stale', 'fence'} end
local fields = redis.call('HMGET', tour_key, 'settings', 'live')
if not fields[1] then return {'tournament_not_found'} end
UNPACK(fields[1], tour_settings: registers checks_in starts)
local status, version, seq, last_nonce, call, escrow, entrants, checked_in, round, open, cursor, roll, funded =
  string.match(fields[2], PATTERN(tour_live:
    status version seq nonce call escrow entrants checked_in round open cursor roll funded))
local now_ms, now = read_clock()
if fence ~= '' and is_skewed(now_ms, node_ms) then return {'stale', 'clock'} end
local next_status, due
if status == 'ANNOUNCED' and (funded == '1' or prize == '1') then
  funded, due = '1', registers
  if now_ms >= tonumber(registers) then next_status, due = 'REGISTRATION', checks_in ~= '' and checks_in or starts end
elseif status == 'REGISTRATION' and checks_in ~= '' then
  due = checks_in
  if now_ms >= tonumber(checks_in) then next_status, due = 'CHECK_IN', starts end
end
if not due or call == nonce then return 'ok' end

keep_fence(fence_key, fence)
call = nonce
if next_status then
  status, version, seq = next_status, string.format('%d', version + 1), string.format('%d', seq + 1)
  emit_event(publish, events_key, seq, nonce, now, 'tournament.opened', version .. '|' .. status)
else
  nonce = last_nonce
end
redis.call('HSET', tour_key, 'live', PACK(tour_live))
redis.call('ZADD', due_key, due, tour_id)
return 'ok'
