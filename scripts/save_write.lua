-- save_write: makes a state the newest version of a save slot, or changes nothing.
-- INCLUDES  clock event
-- KEYS      1 save  2 slots  3 progress  4 events
-- ARGV      1 publish command  2 nonce  3 base: the version that the caller last read  4 checked:
--           the version that the rules were checked against  5 version: base + 1  6 message
--           7 mark  8 state  9 slot  10 line of the slot in the list  11 most slots  12 versions
--           kept  13 values of the event: its members as JSON
-- RETURNS   ok replay version_conflict stale slots_full
-- INVARIANT versions of a slot count 1, 2, 3 … and each was checked against the one before it
local save_key, slots_key, progress_key, events_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local publish, nonce, base, checked, version = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local message, mark, state, slot, line = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local max_slots, max_versions, event_values = tonumber(ARGV[11]), tonumber(ARGV[12]), ARGV[13]

local newest = redis.call('HGET', save_key, 'ver') or '0'
for old = tonumber(newest), math.max(1, tonumber(newest) - max_versions + 1), -1 do
  local old_version = string.format('%d', old)
  local old_mark = redis.call('HGET', save_key, old_version .. ':mark')
  if old_mark and string.sub(old_mark, 1, #message + 1) == message .. ' ' then
    return {'replay', old_version, old_mark}
  end
end
if newest ~= base then return {'version_conflict'} end
if newest ~= checked then return {'stale'} end
if redis.call('HEXISTS', slots_key, slot) == 0 and redis.call('HLEN', slots_key) >= max_slots then
  return {'slots_full'}
end

local dropped = string.format('%d', version - max_versions)
redis.call('HDEL', save_key, dropped, dropped .. ':mark')
redis.call('HSET', save_key, 'ver', version, version, state, version .. ':mark', mark)
redis.call('HSET', slots_key, slot, line)
local seq = string.format('%d', redis.call('HINCRBY', progress_key, 'seq', 1))
local _, now = read_clock()
emit_event(publish, events_key, seq, nonce, now, 'user.progress', event_values)
redis.call('LTRIM', events_key, -32, -1)
redis.call('PEXPIRE', events_key, 3600000)
return {'ok'}
