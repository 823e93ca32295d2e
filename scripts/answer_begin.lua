-- answer_begin: claims a keyed request for one run, or tells what became of the first, and changes nothing.
-- KEYS  1 answer
-- ARGV  1 fingerprint  2 owner  3 lease ms
-- GIVES ok replay request_in_progress idempotency_key_reused
-- KEEPS one run at a time; a run that ended without a word is forgotten when its lease is over
local record = KEYS[1]
local fingerprint, owner, lease = ARGV[1], ARGV[2], ARGV[3]

local kept = redis.call('HMGET', record, 'fp', 'owner', 'answer')
if not kept[1] then
  redis.call('HSET', record, 'fp', fingerprint, 'owner', owner)
  redis.call('PEXPIRE', record, lease)
  return {'ok'}
end
if kept[1] ~= fingerprint then return {'idempotency_key_reused'} end
if kept[3] then return {'replay', kept[3]} end
if kept[2] == owner then return {'ok'} end
return {'request_in_progress'}
