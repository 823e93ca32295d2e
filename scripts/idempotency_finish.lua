-- idempotency_finish: keeps the response of an execution, or changes nothing when another owner
-- has the record.
-- KEYS      1 record
-- ARGV      1 fingerprint  2 owner  3 sealed: sealed response  4 keep_ms: how long it is kept
-- RETURNS   ok stale
local holder = redis.call('HGET', record_key, 'owner')
if holder and holder ~= owner then return {'stale'} end
redis.call('HSET', record_key, 'fp', fingerprint, 'owner', owner, 'answer', sealed)
redis.call('PEXPIRE', record_key, keep_ms)
return {'ok'}
