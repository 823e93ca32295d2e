-- tour_settle: goes through the next 100 entrants of a tournament, or changes nothing. When it has
-- started: those who did not check in are out, and their fees go back or are forfeited. When it is
-- being settled: the fees go to the prizes. When it is being cancelled: they go back.
-- INCLUDES  clock amounts balance count_stake event tour stake end_room
-- FLAGS     allow-oom
-- KEYS      1 tour  2 events  3 entrants  4 order  5 prize  6 ledger  7 fence  then wallet and
--           lines of each of the users
-- ARGV      1 publish  2 nonce  3 fence: '' outside of the leader's work  4 ref: ref
--           of the tournament  5 users: ids of the users whose keys are given
-- LEDGER    if fees leave the escrow
-- RETURNS   ok stale tournament_not_found
-- INVARIANT each fee leaves the escrow once; escrow is the sum of the fees that are held; what left
--           it for the prizes is in the pool
-- Stale means that the users are not those at the cursor, or, with "fence" behind it, that the
-- leader has a successor.
local nonce_of_call = nonce -- below, nonce is that of the last event
if is_replaced(fence_key, fence) then return {'stale', 'fence'} end
local fields = redis.call('HMGET', tour_key, 'settings', 'live')
if not fields[1] then return {'tournament_not_found'} end
UNPACK(fields[1], tour_settings: token decimals no_check_in)
UNPACK(fields[2], tour_live)
if call == nonce_of_call then return {'ok', nonce_of_call} end
if status ~= 'RUNNING' and status ~= 'SETTLING' and status ~= 'CANCELLING' then return {'stale', nonce_of_call} end
local next_users = redis.call('ZRANGE', order_key, cursor, string.format('%d', cursor + 99))
if #next_users == 0 or table.concat(next_users, ',') ~= users then return {'stale', nonce_of_call} end
if #KEYS ~= NEXT_KEY - 1 + 2 * #next_users then return {'stale', nonce_of_call} end
reject_strings(1, 6)
reject_strings(8, #KEYS)

local _, now = read_clock()
keep_fence(fence_key, fence)
local sum, postings, reason = 0, {}, status == 'SETTLING' and 'fee' or 'refund'
local records = redis.call('HMGET', entrants_key, unpack(next_users))
for i, user in ipairs(next_users) do
  UNPACK(records[i], tour_entrant)
  local is_absent = status == 'RUNNING' and state == 'joined'
  local is_released = stake ~= '0' and (status ~= 'RUNNING' or is_absent and no_check_in == 'refund')
  if is_released then
    local wallet_key, lines_key = KEYS[NEXT_KEY - 2 + 2 * i], KEYS[NEXT_KEY - 1 + 2 * i]
    release_stake(publish, wallet_key, lines_key, nonce_of_call, now, token, decimals, stake,
      reason == 'refund' and stake or '0', reason, ref)
    sum = sum + stake
    if reason == 'refund' then postings[#postings + 1] = ';w' .. user .. ':' .. stake end
  end
  if is_absent then
    state = 'out'
    if is_released then stake = '0' end
    redis.call('HSET', entrants_key, user, PACK(tour_entrant))
    version, seq, nonce = string.format('%d', version + 1), string.format('%d', seq + 1), nonce_of_call
    local left = string.format('%d', escrow - sum)
    emit_event(publish, events_key, seq, nonce, now, 'tournament.left',
      version .. '|' .. user .. '|no_check_in|' .. entrants .. '|' .. left .. '|' .. decimals)
  end
end
if sum > 0 then
  local units = string.format('%d', sum)
  if reason == 'fee' then
    postings[1] = ';p:' .. units
    redis.call('HINCRBY', prize_key, 'pool', units)
  end
  redis.call('RPUSH', ledger_key, now .. '|' .. nonce_of_call .. '|' .. token .. '|' .. reason .. '|' .. ref ..
    '|e:-' .. units .. table.concat(postings))
  escrow = string.format('%d', escrow - sum)
end
call, cursor = nonce_of_call, string.format('%d', cursor + #next_users)
redis.call('HSET', tour_key, 'live', PACK(tour_live))
if sum > 0 then return 'ok' end
return {'ok', nonce_of_call}
