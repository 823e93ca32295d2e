-- tour_join: enters a player into a tournament and takes the fee, or changes nothing. A player who
-- left after the start comes back with the fee, the byes and the points of before.
-- INCLUDES  clock amounts balance check_limits count_stake receipt call_with_receipt event
--           take_stake
-- KEYS      2 tour  3 events  4 entrants  5 order  6 wallet  7 lines  8 ledger
-- ARGV      5 user  6 ref: of the tournament  7 profile
-- LEDGER    if a fee is taken
-- RETURNS   ok replay idempotency_key_reused tournament_not_found disqualified registration_closed
--           tournament_closed tournament_full insufficient_funds stake_limit open_rooms_limit
--           loss_limit self_excluded
-- INVARIANT escrow is the sum of the fees that are held; order names exactly those who entered;
--           live has the position of the last event
local fields = redis.call('HMGET', tour_key, 'settings', 'live')
if not fields[1] then return refuse('tournament_not_found') end
UNPACK(fields[1], tour_settings: fee token decimals max starts late_rounds)
UNPACK(fields[2], tour_live without nonce)
local entrant = redis.call('HGET', entrants_key, user)
local was, was_checked, was_stake
if entrant then was, was_checked, was_stake = string.match(entrant, PATTERN(tour_entrant: state checked stake)) end
if status == 'SETTLING' or status == 'FINISHED' or status == 'CANCELLING' or status == 'CANCELLED' then
  return refuse('tournament_closed')
end
if was == 'disqualified' then return refuse('disqualified') end
if was and was ~= 'out' then return refuse('ok') end
local is_late = status == 'RUNNING' and tonumber(round) <= tonumber(late_rounds) and late_rounds ~= '0'
local now_ms, now = read_clock()
if not is_late and (status ~= 'REGISTRATION' and status ~= 'CHECK_IN' or now_ms >= tonumber(starts)) then
  return refuse('registration_closed')
end
if not was and tonumber(entrants) >= tonumber(max) then return refuse('tournament_full') end
local paid, free, held, line, limited = fee ~= '0' and (not was or was_stake == '0')
if paid then
  free, held, line, limited = read_balance(wallet_key, token)
  local over = limited ~= '' and check_limits(wallet_key, nonce, token, decimals, fee, now_ms)
  if over then return save_receipt(receipt_key, fingerprint, ttl_ms, over) end
  if not has_at_least(free, fee) then return refuse('insufficient_funds', free, fee, token, decimals) end
end

call = nonce
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
if paid then
  take_stake(publish, wallet_key, lines_key, ledger_key, nonce, now, user, token, decimals, fee, ref, free, held, line,
    limited)
  escrow = string.format('%d', escrow + fee)
end
local state, joined, checked, stake = 'joined', now, '', fee
if is_late then
  state, checked = 'checked_in', now
  if not was or was_checked == '' then checked_in = string.format('%d', checked_in + 1) end
end
if not was then
  if is_late and cursor == entrants then cursor = string.format('%d', cursor + 1) end -- nobody is looked at again
  entrants = string.format('%d', entrants + 1)
  redis.call('ZADD', order_key, string.format('%d', redis.call('HINCRBY', tour_key, 'joins', '1')), user)
end
redis.call('HSET', entrants_key, user, PACK(tour_entrant))
emit_event(publish, events_key, seq, nonce, now, 'tournament.joined',
  version .. '|' .. entrants .. '|' .. escrow .. '|' .. decimals .. '|' .. profile)
redis.call('HSET', tour_key, 'live', PACK(tour_live))
local reply = save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce})
return paid and 'ok' or reply
