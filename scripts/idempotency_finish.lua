-- idempotency_finish: keeps the response of an execution, or changes nothing when another owner
-- has the record.
-- KEYS      1 record
-- ARGV      1 fingerprint  2 owner  3 sealed response  4 ttl in ms
-- RETURNS   ok stale
local record_key = KEYS[1]
local fingerprint, owner, sealed, ttl_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local holder = redis.call('HGET', record_key, 'owner')
if holder and holder ~= owner then return {'stale'} end
redis.call('HSET', record_key, 'fp', fingerprint, 'owner', owner, 'answer', sealed)
redis.call('PEXPIRE', record_key, ttl_ms)
return {'ok'}
