-- tour_start: starts a tournament when it is time by the store's clock, or when staff wants it, or
-- cancels it when it has too few players; or changes nothing. Who did not check in is taken out
-- after it, by tour_settle.
-- INCLUDES  clock skewed_clock event tour
-- FLAGS     allow-oom
-- KEYS      1 tour  2 events  3 due  4 fence
-- ARGV      1 publish  2 nonce  3 fence: '' for staff  4 tour_id: tournament id  5 draw: the random
--           number of the draw  6 node_ms: the time of the node
-- RETURNS   ok stale tournament_not_found tournament_closed
-- INVARIANT a tournament starts once, with at least its fewest players; live has the position of
--           the last event
-- Stale means that the leader has a successor, or, with "clock" behind it, that the clocks of store
-- and node differ.
if is_replaced(fence_key, fence) then return {'stale', 'fence'} end
local fields = redis.call('HMGET', tour_key, 'settings', 'live')
if not fields[1] then return {'tournament_not_found'} end
UNPACK(fields[1], tour_settings: min starts)
local status, version, seq, last_nonce, call, escrow, entrants, checked_in, round, open, cursor, roll, funded =
  string.match(fields[2], PATTERN(tour_live:
    status version seq nonce call escrow entrants checked_in round open cursor roll funded))
if status == 'RUNNING' or call == nonce then return 'ok' end
if status ~= 'ANNOUNCED' and status ~= 'REGISTRATION' and status ~= 'CHECK_IN' then
  return {'tournament_closed', nonce}
end
local now_ms, now = read_clock()
if fence ~= '' and is_skewed(now_ms, node_ms) then return {'stale', 'clock'} end
if fence ~= '' and now_ms < tonumber(starts) then return 'ok' end

keep_fence(fence_key, fence)
-- Without a time to check in, as after an outage, all entrants are taken as there.
roll = status == 'CHECK_IN' and '1' or '0'
local players = roll == '1' and checked_in or entrants
call = nonce
version = string.format('%d', version + 1)
redis.call('ZADD', due_key, now, tour_id)
if tonumber(players) < tonumber(min) then
  status, cursor, nonce = 'CANCELLING', '0', last_nonce
  redis.call('HSET', tour_key, 'live', PACK(tour_live), 'reason', 'undersubscribed')
  return 'ok'
end
status, cursor = 'RUNNING', roll == '1' and '0' or entrants
seq = string.format('%d', seq + 1)
emit_event(publish, events_key, seq, nonce, now, 'tournament.started', version .. '|' .. players)
redis.call('HSET', tour_key, 'live', PACK(tour_live), 'started', now, 'draw', draw)
return 'ok'
