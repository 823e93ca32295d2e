-- tour_check_in: notes that an entrant is there, or changes nothing.
-- INCLUDES  clock receipt event
-- KEYS      1 tour  2 events  3 entrants  4 receipt
-- ARGV      1 publish  2 nonce  3 fingerprint  4 ttl_ms  5 user
-- RETURNS   ok replay idempotency_key_reused tournament_not_found not_entrant disqualified
--           check_in_closed tournament_closed
-- INVARIANT checked_in counts those who checked in; live has the position of the last event
local tour_key, events_key, entrants_key, receipt_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local publish, nonce, fingerprint, ttl_ms, user = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local first = find_receipt(receipt_key, fingerprint)
if first then return first end
local function refuse(...) return save_receipt(receipt_key, fingerprint, ttl_ms, {...}) end

local fields = redis.call('HMGET', tour_key, 'settings', 'live')
if not fields[1] then return refuse('tournament_not_found', nonce) end
local starts = string.match(fields[1], PATTERN(tour_settings: starts))
local status, version, seq, _, call, escrow, entrants, checked_in, round, open, cursor, roll, funded =
  string.match(fields[2], PATTERN(tour_live:
    status version seq nonce call escrow entrants checked_in round open cursor roll funded))
local entrant = redis.call('HGET', entrants_key, user)
if not entrant then return refuse('not_entrant', nonce) end
local state, joined, checked, stake, profile =
  string.match(entrant, PATTERN(tour_entrant: state joined checked stake profile))
if state == 'disqualified' then return refuse('disqualified', nonce) end
if status == 'SETTLING' or status == 'FINISHED' or status == 'CANCELLING' or status == 'CANCELLED' then
  return refuse('tournament_closed', nonce)
end
if state == 'checked_in' then return refuse('ok', nonce) end
local now_ms, now = read_clock()
if status ~= 'CHECK_IN' or now_ms >= tonumber(starts) then return refuse('check_in_closed', nonce) end

call, state, checked = nonce, 'checked_in', now
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
checked_in = string.format('%d', checked_in + 1)
redis.call('HSET', entrants_key, user, PACK(tour_entrant))
emit_event(publish, events_key, seq, nonce, now, 'tournament.checked_in', version .. '|' .. user .. '|' .. checked_in)
redis.call('HSET', tour_key, 'live', PACK(tour_live))
return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce})
