-- room_open_match: opens the free room of a match, with a reserved seat for each of its players, or
-- changes nothing.
-- INCLUDES  clock event
-- KEYS      1 room  2 events  3 code  4 next_id  5 due  6 all  7 created  8 free_rooms  then
--           player_rooms of each of the users
-- ARGV      1 publish  2 nonce  3 room_id  4 users: ids of the users whose keys are given, the host
--           first  5 id_step: step between ids  6 id_offset: offset of the shard's ids  7 code
--           8 settings  9 document  10 deadline: ms until which the players may sit down
--           11 stakes: 1 when its tournament has a fee or a prize, else 0  12 dispute_ms: how long
--           a dispute may last  then the profile of each of them
-- RETURNS   ok stale
-- INVARIANT a match has one room; its seats are for its players alone; a code names one room; ids
--           are unique over the shards
-- Stale means that the code is taken. Whoever opens the room again, under the same id, gets it as
-- it is.
local first_player, first_profile = NEXT_KEY, NEXT_ARG

if redis.call('EXISTS', room_key) == 1 then return 'ok' end
if redis.call('EXISTS', code_key) == 1 then return {'stale', nonce} end

UNPACK(settings, room_settings: max_players game visibility idle_ms age_ms)
local now_ms, now = read_clock()
local status, version, seq, pot, active, ready, changed = 'CREATED', '1', '1', '0', '0', '0', now
local host, reserved = string.match(users, '^%d+'), max_players
redis.call('SET', code_key, room_id)
local id = string.format('%d', redis.call('INCR', next_id_key) * id_step + id_offset)
emit_event(publish, events_key, seq, nonce, now, 'room.created', version .. '|' .. code .. '|' .. game .. '|' ..
  max_players .. '||0|0|' .. ARGV[first_profile])
redis.call('HSET', room_key, 'settings', settings, 'document', document, 'code', code, 'id', id, 'created', now,
  'live', PACK(room_live), 'deadline', deadline, 'stakes', stakes, 'dispute_ms', dispute_ms,
  'host_profile', ARGV[first_profile])
local seat = 0
for user in string.gmatch(users, '%d+') do
  redis.call('HSET', room_key, 's' .. user, 'reserved|0|' .. now .. '|0|' .. (1000 + seat) .. '|' ..
    ARGV[first_profile + seat])
  redis.call('ZADD', KEYS[first_player + seat], '0', room_id)
  seat = seat + 1
end
redis.call('ZADD', free_rooms_key, '0', room_id)
redis.call('ZADD', all_key, '0', room_id)
redis.call('ZADD', due_key, string.format('%d', now_ms + math.min(tonumber(idle_ms), tonumber(age_ms))), room_id)
if visibility == 'public' then redis.call('ZADD', created_key, '0', room_id) end
return 'ok'
