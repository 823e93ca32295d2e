-- tour_check_in: notes that an entrant is there, or changes nothing.
-- INCLUDES  clock receipt call_with_receipt event
-- KEYS      2 tour  3 events  4 entrants
-- ARGV      5 user
-- RETURNS   ok replay idempotency_key_reused tournament_not_found not_entrant disqualified
--           check_in_closed tournament_closed
-- INVARIANT checked_in counts those who checked in; live has the position of the last event
local fields = redis.call('HMGET', tour_key, 'settings', 'live')
if not fields[1] then return refuse('tournament_not_found') end
UNPACK(fields[1], tour_settings: starts)
UNPACK(fields[2], tour_live without nonce)
local entrant = redis.call('HGET', entrants_key, user)
if not entrant then return refuse('not_entrant') end
UNPACK(entrant, tour_entrant)
if state == 'disqualified' then return refuse('disqualified') end
if status == 'SETTLING' or status == 'FINISHED' or status == 'CANCELLING' or status == 'CANCELLED' then
  return refuse('tournament_closed')
end
if state == 'checked_in' then return refuse('ok') end
local now_ms, now = read_clock()
if status ~= 'CHECK_IN' or now_ms >= tonumber(starts) then return refuse('check_in_closed') end

call, state, checked = nonce, 'checked_in', now
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
checked_in = string.format('%d', checked_in + 1)
redis.call('HSET', entrants_key, user, PACK(tour_entrant))
emit_event(publish, events_key, seq, nonce, now, 'tournament.checked_in', version .. '|' .. user .. '|' .. checked_in)
redis.call('HSET', tour_key, 'live', PACK(tour_live))
return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce})
