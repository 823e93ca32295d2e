-- room_resolve: ends a disputed room by the word of the operator, with a result or by giving every
-- stake back, or changes nothing.
-- INCLUDES  clock amounts balance count_stake receipt call event seats players stake refund payout
--           end_room finish_room
-- FLAGS     allow-oom
-- KEYS      1 room  2 events  3 disputed  4 finished  5 cancelled  6 due  7 disputes_lost  then the
--           ledger of a paid room, player_rooms of each of the users, in a paid room with wallet
--           and lines, and the outbox of a room with feeds
-- ARGV      4 publish  5 caller_game: game  6 room_id  7 users: ids of the users whose keys are
--           given, in the order of the placements  8 outcome: finish or cancel; '' when the result
--           names other players than the room has  9 placements  10 rake  11 computed_for: version
--           for which these were computed  12 events_ms: how long the events outlive the room
--           13 losers: ids of the users who reported something else than the result
-- LEDGER    if the room is disputed
-- RETURNS   ok replay stale idempotency_key_reused room_not_found not_disputed result_conflict
-- INVARIANT payouts and rake are the pot exactly, or every stake is returned; an index names a room
--           exactly while it is so; each loser of a dispute is counted once
local fields = redis.call('HMGET', room_key, 'settings', 'live', 'disputed', 'placements')
local settings = fields[1]
if not settings then return refuse('room_not_found', nonce) end
UNPACK(settings, room_settings: entry token decimals game visibility keep_ms feeds)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game then return refuse('room_not_found', nonce) end
if not fields[3] then return refuse('not_disputed', nonce) end
if status ~= 'DISPUTED' then
  local is_same = status == 'FINISHED' and outcome == 'finish' and placements == fields[4] or
    status == 'CANCELLED' and outcome == 'cancel'
  if is_same then return refuse('ok', nonce) end
  return refuse('result_conflict', nonce)
end
if outcome == '' or version ~= computed_for then return {'stale', nonce} end
local paid, last_key, outbox_key = entry ~= '0', #KEYS - (receipt_key and 1 or 0)
if feeds ~= '' then outbox_key, last_key = KEYS[last_key], last_key - 1 end
local first_player = paid and NEXT_KEY + 1 or NEXT_KEY
local ledger_key = paid and KEYS[first_player - 1]
local seats, keys_of = read_seats(room_key), collect_player_keys(users, first_player, paid)
if not has_all_players(seats, keys_of) then return {'stale', nonce} end
local payouts = paid and outcome == 'finish' and read_payouts(placements, rake, pot, entry, #seats)
if paid and outcome == 'finish' and not payouts then return {'stale', nonce} end
reject_strings(1, last_key + (outbox_key and 1 or 0))

local now_ms, now = read_clock()
local changed = now
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
if outcome == 'finish' then
  status = 'FINISHED'
  finish_room(publish, events_key, disputed_key, finished_key, due_key, ledger_key, first_player, last_key, seq, nonce,
    now_ms, now, version, token, decimals, entry, pot, rake, placements, payouts, room_id, visibility, keep_ms,
    events_ms)
  redis.call('HSET', room_key, 'placements', placements, 'rake', rake)
  for loser in string.gmatch(losers, '%d+') do redis.call('HINCRBY', disputes_lost_key, loser, '1') end
else
  status = 'CANCELLED'
  local refunds = refund_seats(publish, seats, keys_of, ledger_key, nonce, now, token, decimals, pot, room_id)
  emit_event(publish, events_key, seq, nonce, now, 'room.cancelled',
    version .. '|' .. decimals .. '|dispute_refunded|' .. refunds)
  close_room(disputed_key, cancelled_key, nil, due_key, visibility, room_id, now_ms, keep_ms, events_ms)
  redis.call('HSET', room_key, 'reason', 'dispute_refunded', 'refunds', refunds)
end
redis.call('ZREM', disputed_key, room_id) -- it lists rooms that are not public too
redis.call('HSET', room_key, 'live', PACK(room_live), 'finished', now)
if outbox_key then
  local is_finished = status == 'FINISHED'
  add_to_outbox(outbox_key, room_key, room_id, now, game, feeds, status, is_finished and '' or 'dispute_refunded',
    decimals, is_finished and placements or '')
end
if receipt_key then save_success(receipt_key, fingerprint, ttl_ms, nonce) end
return 'ok'
