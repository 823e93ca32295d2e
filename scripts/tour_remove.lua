-- tour_remove: removes a tournament that has ended, or changes nothing. What was paid stays in the
-- ledger.
-- FLAGS     allow-oom
-- KEYS      1 tour  2 events  3 entrants  4 order  5 matches  6 attempts  7 tours
-- ARGV      1 tour_id: tournament id
-- RETURNS   ok tournament_not_found forbidden
-- INVARIANT a tournament that has not ended stays
local live = redis.call('HGET', tour_key, 'live')
if not live then return 'tournament_not_found' end
UNPACK(live, tour_live: status)
if status ~= 'FINISHED' and status ~= 'CANCELLED' then return 'forbidden' end
redis.call('UNLINK', tour_key, events_key, entrants_key, order_key, matches_key, attempts_key)
redis.call('ZREM', tours_key, tour_id)
return 'ok'
