-- tour_report: stores what became of a match: its room is open, it is being played, it is played
-- again, or it is decided; or changes nothing.
-- INCLUDES  clock skewed_clock event tour
-- FLAGS     allow-oom
-- KEYS      1 tour  2 events  3 matches  4 due  5 fence  6 entrants
-- ARGV      1 publish  2 nonce  3 fence: '' outside of the leader's work  4 tour_id: tournament id
--           5 match_id  6 made_for: attempt to which it happened  7 was: status that the match must
--           have ('' for any but DECIDED)  8 new_state: new status  9 new_attempt  10 new_room:
--           room id  11 new_winner: winner, '' for none  12 new_reason: why it is decided ('' when
--           it is not)  13 wait_ms: until the deadline of the new status  14 over: 1 for what may
--           happen after the deadline only  15 node_ms: the time of the node
-- RETURNS   ok stale tournament_not_found tournament_closed match_not_found match_decided
-- INVARIANT a match is decided once; open counts the undecided matches of the round; no winner is
--           disqualified, and whom staff names as the winner is not out; live has the position of
--           the last event
-- Stale means that it is another attempt, another status or too early, that the winner is
-- disqualified, or out and named by staff, or, with "fence" behind it, that the leader has a
-- successor, or, with "clock", that the clocks of store and node differ.
if is_replaced(fence_key, fence) then return {'stale', 'fence'} end
local live = redis.call('HGET', tour_key, 'live')
if not live then return {'tournament_not_found'} end
UNPACK(live, tour_live without nonce)
if call == nonce then return 'ok' end
if status ~= 'RUNNING' then return {'tournament_closed', nonce} end
local match = redis.call('HGET', matches_key, match_id)
if not match then return {'match_not_found', nonce} end
UNPACK(match, tour_match)
if state == 'DECIDED' then return {'match_decided', nonce} end
local now_ms, now = read_clock()
if fence ~= '' and is_skewed(now_ms, node_ms) then return {'stale', 'clock'} end
if attempt ~= made_for or was ~= '' and was ~= state or over == '1' and now_ms < tonumber(deadline) then
  return {'stale', nonce}
end
if new_winner ~= '' then
  local named = string.match(redis.call('HGET', entrants_key, new_winner) or '', PATTERN(tour_entrant: state))
  if named == 'disqualified' or named == 'out' and new_reason == 'resolved' then return {'stale', nonce} end
end

keep_fence(fence_key, fence)
call, version = nonce, string.format('%d', version + 1)
state, attempt, room, winner, reason = new_state, new_attempt, new_room, new_winner, new_reason
deadline = string.format('%d', now_ms + wait_ms)
if state == 'READY' then
  seq = string.format('%d', seq + 1)
  emit_event(publish, events_key, seq, nonce, now, 'tournament.match_ready',
    version .. '|' .. match_id .. '|' .. room .. '|' .. attempt .. '|' .. deadline .. '|' .. players)
elseif state == 'DECIDED' then
  open, deadline, seq = string.format('%d', open - 1), '', string.format('%d', seq + 1)
  emit_event(publish, events_key, seq, nonce, now, 'tournament.match_decided',
    version .. '|' .. match_id .. '|' .. winner .. '|' .. reason .. '|' .. players)
else
  nonce = string.match(live, PATTERN(tour_live: nonce))
end
redis.call('HSET', matches_key, match_id, PACK(tour_match))
redis.call('HSET', tour_key, 'live', PACK(tour_live))
redis.call('ZADD', due_key, now, tour_id)
return 'ok'
