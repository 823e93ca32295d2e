-- room_finish: ends a started room with a result and pays out the pot, or changes nothing.
-- INCLUDES  clock amounts balance count_stake receipt call event payout end_room finish_room
-- FLAGS     allow-oom
-- KEYS      1 room  2 events  3 started  4 finished  5 due  then the ledger of a paid room,
--           player_rooms of each seat, in a paid room with wallet and lines and in the order of the
--           placements, and the outbox of a room with feeds
-- ARGV      4 publish  5 caller_game: game  6 room_id  7 placements: one for each seat of a paid
--           room  8 rake  9 computed_for: version for which these were computed  10 events_ms: how
--           long the events outlive the room
-- LEDGER    if the room did not have this result already
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed result_conflict
--           not_started room_disputed
-- INVARIANT payouts and rake are the pot exactly; no stake stays held; an index names a room
--           exactly while it is so
local fields = redis.call('HMGET', room_key, 'settings', 'live', 'placements')
local settings = fields[1]
if not settings then return refuse('room_not_found', nonce) end
UNPACK(settings, room_settings: entry token decimals game visibility keep_ms feeds)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game then return refuse('room_not_found', nonce) end
if status == 'FINISHED' then
  if fields[3] ~= placements then
    if version ~= computed_for then return {'stale', nonce} end -- the caller read it before its end
    return refuse('result_conflict', nonce)
  end
  return refuse('ok', nonce) -- the same result again
end
if status == 'CANCELLED' then return refuse('room_closed', nonce) end
if status == 'DISPUTED' then return refuse('room_disputed', nonce) end
if status ~= 'STARTED' then return refuse('not_started', nonce) end
if version ~= computed_for then return {'stale', nonce} end -- so the keys are those of all seats
local paid, last_key, outbox_key = entry ~= '0', #KEYS - (receipt_key and 1 or 0)
if feeds ~= '' then
  outbox_key, last_key = KEYS[last_key], last_key - 1
  reject_strings(last_key + 1, last_key + 1)
end
local first_player = paid and NEXT_KEY + 1 or NEXT_KEY
local ledger_key = paid and KEYS[first_player - 1]
local payouts = paid and read_payouts(placements, rake, pot, entry, (last_key - 6) / 3)
if paid and not payouts then return {'stale', nonce} end

local now_ms, now = read_clock()
local changed = now
status, version, seq = 'FINISHED', string.format('%d', version + 1), string.format('%d', seq + 1)
finish_room(publish, events_key, started_key, finished_key, due_key, ledger_key, first_player, last_key, seq,
  nonce, now_ms, now, version, token, decimals, entry, pot, rake, placements, payouts, room_id, visibility, keep_ms,
  events_ms)
redis.call('HSET', room_key, 'live', PACK(room_live), 'finished', now, 'placements', placements, 'rake', rake)
if outbox_key then
  add_to_outbox(outbox_key, room_key, room_id, now, game, feeds, status, '', decimals, placements)
end
if receipt_key then save_success(receipt_key, fingerprint, ttl_ms, nonce) end
return 'ok'
