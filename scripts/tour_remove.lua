-- tour_remove: removes a tournament that has ended, or changes nothing. What was paid stays in the
-- ledger.
-- FLAGS     allow-oom
-- KEYS      1 tour  2 events  3 entrants  4 order  5 matches  6 attempts  7 tours
-- ARGV      1 tournament id
-- RETURNS   ok tournament_not_found forbidden
-- INVARIANT a tournament that has not ended stays
local tour_key, events_key, entrants_key, order_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local matches_key, attempts_key, tours_key = KEYS[5], KEYS[6], KEYS[7]
local tour_id = ARGV[1]

local live = redis.call('HGET', tour_key, 'live')
if not live then return 'tournament_not_found' end
local status = string.match(live, PATTERN(tour_live: status))
if status ~= 'FINISHED' and status ~= 'CANCELLED' then return 'forbidden' end
redis.call('UNLINK', tour_key, events_key, entrants_key, order_key, matches_key, attempts_key)
redis.call('ZREM', tours_key, tour_id)
return 'ok'
