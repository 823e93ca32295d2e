-- room_sweep: cancels a room whose time is over and gives every stake back, lets go of the events of one that ended ten minutes
-- ago, removes one that ended long ago, or changes nothing.
-- INCLUDES clock amounts balance event seats players stake refund end_room
-- KEYS  1 room 2 events 3 open 4 created 5 started 6 finished 7 cancelled 8 due 9 all 10 every 11 code 12 fence, ledger of a paid
--       room, then the players' keys (see lib_players)
-- ARGV  1 publish 2 nonce 3 room_id 4 users 5 holder (fence of the sweep's leader) 6 events_ms (how long events outlive the room)
-- RETURNS ok stale
-- INVARIANT nothing ends before its time by the store's clock; a leader that was followed by another one changes nothing
local room_key, events_key, open_key, created_key, started_key, finished_key, cancelled_key, due_key = unpack(KEYS, 1, 8)
local all_key, every_key, code_key, fence_key = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local publish, nonce, room_id, users, holder, events_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

local newest = redis.call('GET', fence_key)
if newest and tonumber(holder) < tonumber(newest) then return {'stale', 'fence'} end
local fields = redis.call('HMGET', room_key, 'settings', 'live', 'created', 'started', 'finished')
if not fields[1] then
  redis.call('SET', fence_key, holder)
  redis.call('ZREM', due_key, room_id)
  return 'ok'
end
local entry, token, decimals, visibility, match_ms, idle_ms, age_ms, keep_ms = string.match(fields[1],
  PATTERN(room_settings: entry token decimals visibility match_ms idle_ms age_ms keep_ms))
local status, version, seq, _, pot, active, reserved, ready, host, changed =
  string.match(fields[2], PATTERN(room_live: status version seq nonce pot active reserved ready host changed))
local now_ms, now = read_clock()
local deadline, reason
if status == 'CREATED' then
  local idle, age = changed + idle_ms, fields[3] + age_ms
  deadline, reason = math.min(idle, age), idle < age and 'idle' or 'expired'
elseif status == 'STARTED' then
  deadline, reason = fields[4] + match_ms, 'timeout'
else
  deadline = fields[5] + keep_ms
end
local paid = entry ~= '0'
local seats, keys_of
if reason and now_ms >= deadline then
  keys_of = collect_player_keys(users, paid and 14 or 13, paid)
  seats = read_seats(room_key)
  if not has_all_players(seats, keys_of) then return {'stale', nonce} end
end

redis.call('SET', fence_key, holder)
if now_ms < deadline then
  if not reason then
    if now_ms >= fields[5] + events_ms then redis.call('DEL', events_key) else deadline = fields[5] + events_ms end
  end
  redis.call('ZADD', due_key, string.format('%d', deadline), room_id)
elseif reason then
  local status_key = status == 'CREATED' and created_key or started_key
  changed = now
  status, version, seq = 'CANCELLED', string.format('%d', version + 1), string.format('%d', seq + 1)
  local refunds = refund_seats(publish, seats, keys_of, KEYS[13], nonce, now, token, decimals, pot, room_id)
  emit_event(publish, events_key, seq, nonce, now, 'room.cancelled', version .. '|' .. decimals .. '|' .. reason .. '|' .. refunds)
  close_room(status_key, cancelled_key, open_key, due_key, visibility, room_id, now_ms + math.min(tonumber(keep_ms), tonumber(events_ms)))
  redis.call('HSET', room_key, 'live', PACK(room_live), 'finished', now, 'reason', reason, 'refunds', refunds)
else
  redis.call('DEL', room_key, events_key, code_key)
  redis.call('ZREM', due_key, room_id)
  redis.call('ZREM', status == 'FINISHED' and finished_key or cancelled_key, room_id)
  redis.call('ZREM', all_key, room_id)
  redis.call('ZREM', every_key, room_id)
end
return 'ok'
