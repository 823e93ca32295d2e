-- tour_advance: takes a tournament to its next state when all is done in this one, or changes
-- nothing: from RUNNING to SETTLING, from there to FINISHED, and from CANCELLING to CANCELLED.
-- INCLUDES  clock event tour
-- FLAGS     allow-oom
-- KEYS      1 tour  2 events  3 due  4 fence
-- ARGV      1 publish  2 nonce  3 fence: '' outside of the leader's work  4 tour_id: tournament id
--           5 next_status: next state  6 made_for: version for which it was decided  7 rake
--           8 payouts: "<user>:<place>:<units>:;" for each place that is paid
-- RETURNS   ok stale tournament_not_found
-- INVARIANT a tournament ends once, when no fee is held any more; live has the position of the last
--           event
-- Stale means that there is more to do, that the tournament has another version, or, with "fence"
-- behind it, that the leader has a successor.
if is_replaced(fence_key, fence) then return {'stale', 'fence'} end
local fields = redis.call('HMGET', tour_key, 'settings', 'live', 'rake', 'payouts', 'reason', 'pot')
if not fields[1] then return {'tournament_not_found'} end
UNPACK(fields[1], tour_settings: decimals added)
local status, version, seq, last_nonce, call, escrow, entrants, checked_in, round, open, cursor, roll, funded =
  string.match(fields[2], PATTERN(tour_live:
    status version seq nonce call escrow entrants checked_in round open cursor roll funded))
if call == nonce or status == next_status then return 'ok' end
if version ~= made_for or cursor ~= entrants then return {'stale', nonce} end
local is_settling = status == 'RUNNING' and next_status == 'SETTLING' and open == '0'
local is_ended = escrow == '0' and
  (status == 'SETTLING' and next_status == 'FINISHED' or status == 'CANCELLING' and next_status == 'CANCELLED')
if not is_settling and not is_ended then return {'stale', nonce} end

local _, now = read_clock()
keep_fence(fence_key, fence)
call, status, version = nonce, next_status, string.format('%d', version + 1)
if is_settling then
  local pot = string.format('%d', escrow + added)
  cursor, nonce = '0', last_nonce
  redis.call('HSET', tour_key, 'live', PACK(tour_live), 'rake', rake, 'payouts', payouts, 'pot', pot)
  redis.call('ZADD', due_key, now, tour_id)
  return 'ok'
end
seq = string.format('%d', seq + 1)
if status == 'FINISHED' then
  emit_event(publish, events_key, seq, nonce, now, 'tournament.settled',
    version .. '|' .. decimals .. '|' .. fields[6] .. '|' .. fields[3] .. '|' .. fields[4])
else
  emit_event(publish, events_key, seq, nonce, now, 'tournament.cancelled', version .. '|' .. fields[5])
end
redis.call('HSET', tour_key, 'live', PACK(tour_live), 'ended', now)
redis.call('ZREM', due_key, tour_id)
return 'ok'
