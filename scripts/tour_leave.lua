-- tour_leave: takes a player out of a tournament, at the own wish or because staff disqualifies the
-- player, or changes nothing. Before the start the fee goes back.
-- INCLUDES  clock amounts balance count_stake receipt call_with_receipt event stake
-- FLAGS     allow-oom
-- KEYS      2 tour  3 events  4 entrants  5 order  6 due  7 wallet  8 lines  9 ledger
-- ARGV      5 user  6 ref: of the tournament  7 tour_id: tournament id  8 new_state: out or
--           disqualified
-- LEDGER    if a fee goes back
-- RETURNS   ok replay idempotency_key_reused tournament_not_found not_entrant disqualified
--           tournament_closed
-- INVARIANT escrow is the sum of the fees that are held; order names exactly those who entered and,
--           before the start, did not leave; live has the position of the last event
local fields = redis.call('HMGET', tour_key, 'settings', 'live')
if not fields[1] then return refuse('tournament_not_found') end
UNPACK(fields[1], tour_settings: token decimals)
UNPACK(fields[2], tour_live without nonce)
local entrant = redis.call('HGET', entrants_key, user)
if not entrant then return refuse('not_entrant') end
UNPACK(entrant, tour_entrant)
if state == 'disqualified' then return refuse(new_state == state and 'ok' or 'disqualified') end
if status == 'SETTLING' or status == 'FINISHED' or status == 'CANCELLING' or status == 'CANCELLED' then
  return refuse('tournament_closed')
end
if state == new_state then return refuse('not_entrant') end

local _, now = read_clock()
call = nonce
local is_refunded = status ~= 'RUNNING' and stake ~= '0'
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
if status == 'RUNNING' then
  state = new_state
  redis.call('HSET', entrants_key, user, PACK(tour_entrant))
  redis.call('ZADD', due_key, now, tour_id)
else
  if is_refunded then
    release_stake(publish, wallet_key, lines_key, nonce, now, token, decimals, stake, stake, 'refund', ref)
    redis.call('RPUSH', ledger_key,
      now .. '|' .. nonce .. '|' .. token .. '|refund|' .. ref .. '|e:-' .. stake .. ';w' .. user .. ':' .. stake)
    escrow = string.format('%d', escrow - stake)
  end
  entrants = string.format('%d', entrants - 1)
  if state == 'checked_in' then checked_in = string.format('%d', checked_in - 1) end
  redis.call('ZREM', order_key, user)
  state, stake = new_state, '0'
  if new_state == 'disqualified' then
    redis.call('HSET', entrants_key, user, PACK(tour_entrant)) -- so that the player cannot come back
  else
    redis.call('HDEL', entrants_key, user)
  end
end
emit_event(publish, events_key, seq, nonce, now, 'tournament.left',
  version .. '|' .. user .. '|' .. (new_state == 'out' and 'left' or new_state) .. '|' .. entrants .. '|' .. escrow ..
  '|' .. decimals)
redis.call('HSET', tour_key, 'live', PACK(tour_live))
local reply = save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce})
return is_refunded and 'ok' or reply
