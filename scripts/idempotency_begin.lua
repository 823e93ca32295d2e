-- idempotency_begin: claims a keyed request for one execution, or changes nothing and returns
-- what became of the first.
-- FLAGS     allow-oom
-- KEYS      1 record
-- ARGV      1 fingerprint  2 owner  3 lease_ms
-- CONFIRM   no: a claim lasts for seconds
-- RETURNS   ok replay request_in_progress idempotency_key_reused
-- INVARIANT one execution at a time; one that neither finished nor was released is forgotten when
--           its lease is over
local record = redis.call('HMGET', record_key, 'fp', 'owner', 'answer')
local first_fingerprint, holder, response = record[1], record[2], record[3]
if not first_fingerprint then
  redis.call('HSET', record_key, 'fp', fingerprint, 'owner', owner)
  redis.call('PEXPIRE', record_key, lease_ms)
  return {'ok'}
end
if first_fingerprint ~= fingerprint then return {'idempotency_key_reused'} end
if response then return {'replay', response} end
if holder == owner then return {'ok'} end
return {'request_in_progress'}
