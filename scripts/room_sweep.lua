-- room_sweep: cancels a room whose time is over and gives every stake back, removes one that ended long ago, or changes nothing.
-- USES  clock event money receipt room
-- KEYS  1 room 2 events 3 receipt 4 due 5 open 6 created 7 started 8 finished 9 cancelled 10 all 11 every 12 totals 13 ledger
--       14 code 15 fence
--       then wallet, lines and events of each in purses …
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl 5 who 6 uid 7 game 8 purses
--       9 room_id 10 holder (fence of the sweep's leader)
-- GIVES ok stale
-- KEEPS nothing ends before its time by Redis' clock; a leader that was followed by another one changes nothing
local code_key, fence_key = KEYS[14], KEYS[15]
local room_id, holder = ARGV[9], ARGV[10]

local newest = redis.call('GET', fence_key)
if newest and tonumber(holder) < tonumber(newest) then return {'stale', nonce} end
if not open_room() then
  redis.call('SET', fence_key, holder)
  redis.call('ZREM', due_key, room_id)
  return {'ok', nonce}
end
local deadline, reason
if R.status == 'CREATED' then
  local idle, age = tonumber(R.changed) + tonumber(R.idle), tonumber(R.created) + tonumber(R.age)
  deadline, reason = math.min(idle, age), idle < age and 'idle' or 'expired'
elseif R.status == 'STARTED' then
  deadline, reason = tonumber(R.started) + tonumber(R.match), 'timeout'
else
  deadline = tonumber(R.finished) + tonumber(R.keep)
end
if now_ms >= deadline and reason and staked_without_purse() then return answer('stale') end

redis.call('SET', fence_key, holder)
if now_ms < deadline then
  redis.call('ZADD', due_key, whole(deadline), R.room)
elseif reason then
  change()
  cancel(reason)
  save()
else
  redis.call('DEL', room_key, stream_key, code_key)
  redis.call('ZREM', due_key, R.room)
  redis.call('ZREM', status_key[R.status], R.room)
  redis.call('ZREM', all_key, R.room)
  redis.call('ZREM', every_key, R.room)
end
return answer('ok')
