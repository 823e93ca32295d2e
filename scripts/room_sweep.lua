-- room_sweep: cancels a room whose time is over and gives every stake back, drops the events of one
-- that ended a while ago, removes one that ended long ago, or changes nothing.
-- INCLUDES  clock skewed_clock amounts balance count_stake event seats players stake refund
--           end_room
-- FLAGS     allow-oom
-- KEYS      1 room  2 events  3 open  4 created  5 started: or disputed of a room that was read as
--           disputed  6 finished  7 cancelled  8 due  9 all  10 code  11 fence
--           12 ledger_or_free_rooms: ledger of a paid room, free_rooms of a free one  then
--           player_rooms of each of the users, in a paid room with wallet and lines, and the outbox
--           of a room with feeds
-- ARGV      1 publish  2 nonce  3 room_id  4 users: ids of the users whose keys are given  5 fence:
--           fencing token of the sweep's leader  6 events_ms: how long the events outlive the room
--           7 dispute_ms: how long a dispute may last, unless the room has its own time
--           8 was_disputed: 1 when the room was read as disputed  9 node_ms: the time of the node
-- LEDGER    if stakes go back
-- RETURNS   ok stale
-- INVARIANT nothing ends before its time by the store's clock; a leader that has a successor
--           changes nothing; every stake is returned in full; an index names a room exactly while
--           it is so
-- Stale means that the keys of a player are missing, or that a window for reports runs, which
-- room_window_close ends; "fence" behind it, that the leader has a successor; "clock", that the
-- clocks of store and node differ.
local ledger_key, free_rooms_key = ledger_or_free_rooms_key, ledger_or_free_rooms_key

local newest = redis.call('GET', fence_key)
if newest and tonumber(fence) < tonumber(newest) then return {'stale', 'fence'} end
local fields = redis.call('HMGET', room_key, 'settings', 'live', 'created', 'started', 'finished',
  'disputed', 'window', 'dispute_ms')
local settings, created, started, finished, disputed = fields[1], fields[3], fields[4], fields[5], fields[6]
if not settings then
  redis.call('SET', fence_key, fence)
  redis.call('ZREM', due_key, room_id)
  return {'ok', nonce}
end
UNPACK(settings, room_settings: entry token decimals game visibility match_ms idle_ms age_ms keep_ms feeds)
UNPACK(fields[2], room_live without nonce)
local now_ms, now = read_clock()
if is_skewed(now_ms, node_ms) then return {'stale', 'clock'} end
local is_open, is_disputed = status == 'CREATED', status == 'DISPUTED'
if is_disputed and was_disputed ~= '1' then return {'stale', nonce} end
local deadline, reason
if is_open then
  local idle, age = changed + idle_ms, created + age_ms
  deadline, reason = math.min(idle, age), idle < age and 'idle' or 'expired'
elseif status == 'STARTED' then
  if fields[7] then return {'stale', nonce} end
  deadline, reason = started + match_ms, 'timeout'
elseif is_disputed then
  deadline, reason = disputed + (fields[8] or dispute_ms), 'dispute_refunded'
else
  deadline = finished + keep_ms
end
local paid, is_over = entry ~= '0', now_ms >= deadline
local seats, keys_of
if reason and is_over then
  seats, keys_of = read_seats(room_key), collect_player_keys(users, NEXT_KEY, paid)
  if not has_all_players(seats, keys_of) then return {'stale', nonce} end
end
reject_strings(1, 9)
reject_strings(12, #KEYS)

redis.call('SET', fence_key, fence)
if not is_over then
  if not reason and now_ms >= finished + events_ms then
    redis.call('DEL', events_key)
  elseif not reason then
    deadline = math.min(deadline, finished + events_ms)
  end
  redis.call('ZADD', due_key, string.format('%d', deadline), room_id)
elseif reason then
  local status_key = is_open and created_key or started_key
  changed = now
  status, version, seq = 'CANCELLED', string.format('%d', version + 1), string.format('%d', seq + 1)
  local refunds = refund_seats(publish, seats, keys_of, ledger_key, nonce, now, token, decimals, pot, room_id)
  emit_event(publish, events_key, seq, nonce, now, 'room.cancelled',
    version .. '|' .. decimals .. '|' .. reason .. '|' .. refunds)
  close_room(status_key, cancelled_key, is_open and open_key, due_key, visibility, room_id, now_ms, keep_ms, events_ms)
  if is_disputed then redis.call('ZREM', started_key, room_id) end -- it lists rooms that are not public too
  redis.call('HSET', room_key, 'live', PACK(room_live), 'finished', now, 'reason', reason, 'refunds', refunds)
  if feeds ~= '' then
    add_to_outbox(KEYS[#KEYS], room_key, room_id, now, game, feeds, status, reason, decimals, '')
  end
  if refunds ~= '' then return 'ok' end
else
  redis.call('DEL', room_key, events_key, code_key)
  redis.call('ZREM', due_key, room_id)
  redis.call('ZREM', all_key, room_id)
  if visibility == 'public' then
    redis.call('ZREM', status == 'FINISHED' and finished_key or cancelled_key, room_id)
  end
  if not paid then redis.call('ZREM', free_rooms_key, room_id) end
end
return {'ok', nonce}
