-- tour_pair: begins a round with the pairings that were made for it, or changes nothing.
-- INCLUDES  clock skewed_clock event tour
-- KEYS      1 tour  2 events  3 matches  4 due  5 fence
-- ARGV      1 publish  2 nonce  3 fence  4 tour_id: tournament id  5 new_round: round  6 made_for:
--           version for which the pairings were made  7 seeds: the players in the order of their
--           seeds  8 undecided: how many matches are not decided  9 wait_ms: until their deadline
--           10 count: how many matches  11 node_ms: the time of the node  then pairs of a match id
--           and its match, without the deadline
-- RETURNS   ok stale tournament_not_found
-- INVARIANT a round begins once, when all matches of the one before are decided, with the players
--           who were there; live has the position of the last event
-- Stale means that the pairings are not those of the next round as it is now, or, with "fence"
-- behind it, that the leader has a successor, or, with "clock", that the clocks of store and node
-- differ.
if is_replaced(fence_key, fence) then return {'stale', 'fence'} end
local live = redis.call('HGET', tour_key, 'live')
if not live then return {'tournament_not_found'} end
UNPACK(live, tour_live without nonce)
if call == nonce then return 'ok' end
if status ~= 'RUNNING' or open ~= '0' or cursor ~= entrants then return {'stale', nonce} end
if version ~= made_for then return {'stale', nonce} end
if tonumber(new_round) ~= round + 1 then return {'stale', nonce} end

local now_ms, now = read_clock()
if is_skewed(now_ms, node_ms) then return {'stale', 'clock'} end
keep_fence(fence_key, fence)
call, round, open, version = nonce, new_round, undecided, string.format('%d', version + 1)
local deadline = string.format('%d', now_ms + wait_ms)
seq = string.format('%d', seq + 1)
emit_event(publish, events_key, seq, nonce, now, 'tournament.round_started',
  version .. '|' .. round .. '|' .. count .. '|' .. deadline)
for i = NEXT_ARG, #ARGV, 2 do
  redis.call('HSET', matches_key, ARGV[i], deadline .. '|' .. ARGV[i + 1])
end
redis.call('HSET', tour_key, 'live', PACK(tour_live), 'seeds', seeds, 'round:' .. round, now .. '|' .. count)
redis.call('ZADD', due_key, now, tour_id)
return 'ok'
