-- tour_refund: decides a match that nobody won by taking both players out of the tournament, whose
-- fees go back; or changes nothing.
-- INCLUDES  clock skewed_clock amounts balance count_stake event tour stake end_room
-- FLAGS     allow-oom
-- KEYS      1 tour  2 events  3 matches  4 due  5 fence  6 entrants  7 ledger  then wallet and
--           lines of each of the users
-- ARGV      1 publish  2 nonce  3 fence: '' outside of the leader's work  4 tour_id: tournament id
--           5 match_id  6 made_for: attempt to which it happened  7 ref: of the tournament
--           8 users: ids of the users whose keys are given, the players of the match  9 over: 1 for
--           what may happen after the deadline only  10 node_ms: the time of the node
-- LEDGER    if fees go back
-- RETURNS   ok stale tournament_not_found tournament_closed match_not_found match_decided
-- INVARIANT a match is decided once; each fee leaves the escrow once; escrow is the sum of the fees
--           that are held; open counts the undecided matches of the round; live has the position of
--           the last event
-- Stale means that it is another attempt or too early, that the match has other players, or one who
-- is out already, or, with "fence" behind it, that the leader has a successor, or, with "clock",
-- that the clocks of store and node differ.
if is_replaced(fence_key, fence) then return {'stale', 'fence'} end
local fields = redis.call('HMGET', tour_key, 'settings', 'live')
if not fields[1] then return {'tournament_not_found'} end
UNPACK(fields[1], tour_settings: token decimals)
UNPACK(fields[2], tour_live without nonce)
if call == nonce then return {'ok', nonce} end
if status ~= 'RUNNING' then return {'tournament_closed', nonce} end
local match = redis.call('HGET', matches_key, match_id)
if not match then return {'match_not_found', nonce} end
UNPACK(match, tour_match)
if state == 'DECIDED' then return {'match_decided', nonce} end
local now_ms, now = read_clock()
if fence ~= '' and is_skewed(now_ms, node_ms) then return {'stale', 'clock'} end
if attempt ~= made_for or over == '1' and now_ms < tonumber(deadline) then return {'stale', nonce} end
if string.gsub(players, ':%d+', '') ~= users then return {'stale', nonce} end
local out = {}
for user in string.gmatch(users, '%d+') do
  local entrant = redis.call('HGET', entrants_key, user) or ''
  local entrant_state, joined, checked, stake, profile =
    string.match(entrant, PATTERN(tour_entrant: state joined checked stake profile))
  if not stake or entrant_state == 'out' or entrant_state == 'disqualified' then return {'stale', nonce} end
  out[#out + 1] = {user = user, joined = joined, checked = checked, stake = stake, profile = profile}
end
if #KEYS ~= NEXT_KEY - 1 + 2 * #out then return {'stale', nonce} end
reject_strings(1, 4)
reject_strings(6, #KEYS)

keep_fence(fence_key, fence)
local sum, postings = 0, {}
call, version = nonce, string.format('%d', version + 1)
state = 'out'
for i, entrant in ipairs(out) do
  local user, joined, checked, stake, profile =
    entrant.user, entrant.joined, entrant.checked, entrant.stake, entrant.profile
  if stake ~= '0' then
    local wallet_key, lines_key = KEYS[NEXT_KEY - 2 + 2 * i], KEYS[NEXT_KEY - 1 + 2 * i]
    release_stake(publish, wallet_key, lines_key, nonce, now, token, decimals, stake, stake, 'refund', ref)
    postings[#postings + 1] = ';w' .. user .. ':' .. stake
    sum = sum + stake
    stake = '0'
  end
  redis.call('HSET', entrants_key, user, PACK(tour_entrant))
  seq = string.format('%d', seq + 1)
  emit_event(publish, events_key, seq, nonce, now, 'tournament.left', version .. '|' .. user .. '|disputed|' ..
    entrants .. '|' .. string.format('%d', escrow - sum) .. '|' .. decimals)
end
if sum > 0 then
  local units = string.format('%d', sum)
  redis.call('RPUSH', ledger_key,
    now .. '|' .. nonce .. '|' .. token .. '|refund|' .. ref .. '|e:-' .. units .. table.concat(postings))
  escrow = string.format('%d', escrow - sum)
end
state, winner, reason, deadline = 'DECIDED', '', 'refunded', ''
open, seq = string.format('%d', open - 1), string.format('%d', seq + 1)
emit_event(publish, events_key, seq, nonce, now, 'tournament.match_decided',
  version .. '|' .. match_id .. '|' .. winner .. '|' .. reason .. '|' .. players)
redis.call('HSET', matches_key, match_id, PACK(tour_match))
redis.call('HSET', tour_key, 'live', PACK(tour_live))
redis.call('ZADD', due_key, now, tour_id)
if sum > 0 then return 'ok' end
return {'ok', nonce}
