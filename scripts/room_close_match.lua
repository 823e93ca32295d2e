-- room_close_match: cancels the room of a match that has not started at its deadline, or changes
-- nothing.
-- INCLUDES  clock skewed_clock event end_room seats players
-- FLAGS     allow-oom
-- KEYS      1 room  2 events  3 open  4 created  5 cancelled  6 due  7 outbox  then player_rooms of
--           each of the users
-- ARGV      1 publish  2 nonce  3 caller_game: game  4 room_id  5 users: ids of the users whose
--           keys are given  6 events_ms: how long the events outlive the room  7 node_ms: the time
--           of the node
-- RETURNS   ok stale room_not_found
-- INVARIANT nothing ends before its time by the store's clock; a player who sits down is in a match
--           that starts or in none: whoever is the last sits down before this script, or not at
--           all; an index names a room exactly while it is so
-- A room that started or ended stays as it is, and one whose deadline is still to come: ok too. The
-- last player to sit down starts the match. Stale with "clock" means that the clocks of store and
-- node differ.
local fields = redis.call('HMGET', room_key, 'settings', 'live', 'deadline')
local settings, deadline = fields[1], fields[3]
if not settings then return {'room_not_found', nonce} end
UNPACK(settings, room_settings: decimals game visibility keep_ms feeds)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game or not deadline then return {'room_not_found', nonce} end
local now_ms, now = read_clock()
if is_skewed(now_ms, node_ms) then return {'stale', 'clock'} end
if status ~= 'CREATED' or now_ms < tonumber(deadline) then return 'ok' end
local seats, keys_of = read_seats(room_key), collect_player_keys(users, NEXT_KEY, false)
if not has_all_players(seats, keys_of) then return {'stale', nonce} end
reject_strings(1, #KEYS)

local changed = now
status, version, seq = 'CANCELLED', string.format('%d', version + 1), string.format('%d', seq + 1)
for _, seat in ipairs(seats) do redis.call('ZREM', keys_of[seat.user][1], room_id) end
emit_event(publish, events_key, seq, nonce, now, 'room.cancelled', version .. '|' .. decimals .. '|no_show|')
close_room(created_key, cancelled_key, open_key, due_key, visibility, room_id, now_ms, keep_ms, events_ms)
redis.call('HSET', room_key, 'live', PACK(room_live), 'finished', now, 'reason', 'no_show', 'refunds', '')
add_to_outbox(outbox_key, room_key, room_id, now, game, feeds, status, 'no_show', decimals, '')
return 'ok'
