-- save_write: makes a state the newest version of a save slot, or changes nothing.
-- USES  clock event
-- KEYS  1 save  2 slots  3 progress  4 events
-- ARGV  1 publish  2 nonce  3 base: the version that the caller last read  4 judged: the version that the rules were checked
--       against  5 version: base + 1  6 message  7 mark  8 state  9 slot  10 line of the slot in the list
--       11 most slots  12 versions kept  13 event data
-- GIVES ok replay version_conflict stale slots_full
-- KEEPS versions of a slot count 1, 2, 3 … and each was judged against the one before it
local save, slots, progress, events = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local verb, nonce, base, judged, version = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local message, mark, state, slot, line = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local most, kept, data = tonumber(ARGV[11]), tonumber(ARGV[12]), ARGV[13]

local newest = redis.call('HGET', save, 'ver') or '0'
for old = tonumber(newest), math.max(1, tonumber(newest) - kept + 1), -1 do
  local known = redis.call('HGET', save, whole(old) .. ':mark')
  if known and string.sub(known, 1, #message + 1) == message .. ' ' then return {'replay', whole(old), known} end
end
if newest ~= base then return {'version_conflict'} end
if newest ~= judged then return {'stale'} end
if redis.call('HEXISTS', slots, slot) == 0 and redis.call('HLEN', slots) >= most then return {'slots_full'} end

local gone = whole(tonumber(version) - kept)
redis.call('HDEL', save, gone, gone .. ':mark')
redis.call('HSET', save, 'ver', version, version, state, version .. ':mark', mark)
redis.call('HSET', slots, slot, line)
local seq = whole(redis.call('HINCRBY', progress, 'seq', 1))
emit(verb, events, 32, nonce, seq, 'user.progress', '', data)
redis.call('PEXPIRE', events, 3600000)
return {'ok'}
