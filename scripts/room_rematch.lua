-- room_rematch: opens a room with the settings of one that ended, seats the caller and reserves
-- seats for the others; or changes nothing.
-- INCLUDES  clock amounts balance check_limits count_stake receipt call event seats players
--           take_stake open_room
-- KEYS      1 room  2 events  then the keys of the new room as open_room wants them, with the
--           ledger of a paid one, and player_rooms of each of the others
-- ARGV      4 publish  5 user  6 caller_game: game  7 new_room_id: id of the new room  8 id_step:
--           step between ids  9 id_offset: offset of the shard's ids  10 code  11 document: of the
--           new room  12 profile  13 users: ids of the others  14 max_seats: most seats of a
--           player, 0 for any number  15 max_rooms: most rooms made by a player that have not
--           ended, likewise  16 ended: ids of the player's rooms that have ended, with "," behind
--           each, and before them when all were looked up  17 stakes: of the new room, 1 when a
--           free one feeds a leaderboard with prizes, else ''
-- LEDGER    if the room had no rematch
-- RETURNS   ok replay stale idempotency_key_reused room_not_found not_participant not_started
--           already_started limit_reached insufficient_funds forbidden
--           stake_limit open_rooms_limit loss_limit self_excluded
-- INVARIANT a room has one rematch, that of the first caller
-- The id of the rematch follows ok when it is not the new room.
local first_new = NEXT_KEY -- where the keys of the new room begin
local new_room_key = KEYS[first_new]

local fields = redis.call('HMGET', room_key, 'settings', 'live', 's' .. user, 'rematch')
local settings, seat, rematch = fields[1], fields[3], fields[4]
if not settings then return refuse('room_not_found', nonce) end
UNPACK(settings, room_settings: entry game visibility feeds)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game then return refuse('room_not_found', nonce) end
if visibility == 'private' and not seat then return refuse('room_not_found', nonce) end
if not seat or string.byte(seat) ~= 97 then return refuse('not_participant', nonce) end -- not "active"
if string.byte(feeds) == 116 then return refuse('forbidden', nonce) end -- "t.": its tournament makes the next one
if status == 'CREATED' then return refuse('not_started', nonce) end
if status ~= 'FINISHED' and status ~= 'CANCELLED' then return refuse('already_started', nonce) end
if rematch then return refuse('ok', nonce, rematch) end
local keys_of = collect_player_keys(users, entry ~= '0' and NEXT_KEY + 14 or NEXT_KEY + 12, false)
local now_ms, now = read_clock()
local held, lists = {}, {}
for _, other in ipairs(read_seats(room_key)) do
  if other.state == 'active' and other.user ~= user then
    if not keys_of[other.user] then return {'stale', nonce} end
    lists[#lists + 1] = keys_of[other.user][1]
    held[#held + 1] = 's' .. other.user
    held[#held + 1] = 'reserved|0|' .. now .. '|0|' .. (1000 + #lists) .. '|' .. other.profile
  end
end

local reply = open_room(publish, nonce, now_ms, now, first_new, new_room_id, user, id_step, id_offset, code,
  REPLACE(room_settings: creator in settings by user), document, profile, string.format('%d', #lists),
  max_seats, max_rooms, ended)
if reply then return reply[1] == 'stale' and reply or refuse(unpack(reply)) end
local changed = now
if stakes == '1' then redis.call('HSET', new_room_key, 'stakes', stakes) end
if #lists > 0 then
  redis.call('HSET', new_room_key, unpack(held))
  for _, list_key in ipairs(lists) do redis.call('ZADD', list_key, '0', new_room_id) end
end
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
emit_event(publish, events_key, seq, nonce, now, 'room.rematch',
  version .. '|' .. user .. '|' .. new_room_id .. '|' .. code)
redis.call('HSET', room_key, 'live', PACK(room_live), 'rematch', new_room_id)
save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce, new_room_id})
return 'ok'
