-- room_create: opens a room, seats its creator and takes the stake, or changes nothing.
-- INCLUDES  clock amounts balance check_limits count_stake receipt call event take_stake open_room
-- KEYS      1 room  2 events  3 code  4 next_id  5 due  6 all  7 created  8 started  9 open
--           10 player_rooms  11 rooms_made  then wallet, lines and ledger of a paid room or
--           free_rooms of a free one
-- ARGV      4 publish  5 user  6 room_id  7 id_step: step between ids  8 id_offset: offset of the
--           shard's ids  9 code  10 settings: '' to look up the receipt only  11 document
--           12 profile  13 max_seats: most seats of a player, 0 for any number  14 max_rooms: most
--           rooms made by a player that have not ended, likewise  15 ended: ids of the player's
--           rooms that have ended, with "," behind each, and before them when all were looked up
--           16 stakes: 1 when a free room feeds a leaderboard with prizes, else ''
-- LEDGER    always
-- RETURNS   ok replay stale idempotency_key_reused limit_reached insufficient_funds
--           stake_limit open_rooms_limit loss_limit self_excluded
-- INVARIANT the pot is the sum of the stakes; a code names one room; ids are unique over the shards
-- Stale means that the code is taken, or that there is no receipt, or, with ids behind it, that it
-- must be known which of these rooms have ended. The room id follows ok.
if settings == '' then return {'stale', nonce} end
local now_ms, now = read_clock()
local reply = open_room(publish, nonce, now_ms, now, 1, room_id, user, id_step, id_offset, code, settings, document,
  profile, '0', max_seats, max_rooms, ended)
if reply and reply[1] == 'stale' then return reply end
if stakes == '1' and not reply then redis.call('HSET', room_key, 'stakes', stakes) end
return save_receipt(receipt_key, fingerprint, ttl_ms, reply or {'ok', nonce, room_id})
