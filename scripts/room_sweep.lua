-- room_sweep: cancels a room whose time is over and returns every stake, deletes one that ended
-- long ago, or changes nothing.
-- INCLUDES  clock int_to_string format_time format_decimal hincrby_many emit_event
--           apply_balance_change post_ledger_entry room_params room_wallets room build_reply
--           begin_change is_wallet_missing move_money post_room_entry emit_room_event
--           format_amount close_room cancel_room
-- KEYS      14 code  15 fence
-- ARGV      9 room id  10 fencing token of the sweep's leader
-- RETURNS   ok stale
-- INVARIANT nothing ends before its time by Redis' clock; a leader that has a successor changes
--           nothing
local code_key, fence_key = KEYS[14], KEYS[15]
local room_id, token = ARGV[9], ARGV[10]

local newest = redis.call('GET', fence_key)
if newest and tonumber(token) < tonumber(newest) then return {'stale', nonce} end
local room = load_room(room_key, events_key)
if not room then
  redis.call('SET', fence_key, token)
  redis.call('ZREM', due_key, room_id)
  return {'ok', nonce}
end
local fields = room.fields
local deadline, reason
if room.status == 'CREATED' then
  local idle, age = tonumber(fields.changed) + tonumber(room.idle_ms), tonumber(fields.created) + tonumber(room.age_ms)
  deadline, reason = math.min(idle, age), idle < age and 'idle' or 'expired'
elseif room.status == 'STARTED' then
  deadline, reason = tonumber(fields.started) + tonumber(room.match_ms), 'timeout'
else
  deadline = tonumber(fields.finished) + tonumber(room.retention_ms)
end
if now_ms >= deadline and reason and is_wallet_missing(room) then return build_reply('stale', room) end

redis.call('SET', fence_key, token)
if now_ms < deadline then
  redis.call('ZADD', due_key, int_to_string(deadline), room.id)
elseif reason then
  begin_change(room)
  cancel_room(room, reason)
  save_room(room)
else
  redis.call('DEL', room_key, events_key, code_key)
  redis.call('ZREM', due_key, room.id)
  redis.call('ZREM', status_keys[room.status], room.id)
  redis.call('ZREM', all_key, room.id)
  redis.call('ZREM', every_key, room.id)
end
return build_reply('ok', room)
