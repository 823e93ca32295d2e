-- idempotency_release: deletes an execution without a response worth keeping, or changes nothing
-- when another owner has the record or it has its response.
-- FLAGS     allow-oom
-- KEYS      1 record
-- ARGV      1 owner
-- CONFIRM   no: a claim lasts for seconds
-- RETURNS   ok stale
local record = redis.call('HMGET', record_key, 'owner', 'answer')
local holder, response = record[1], record[2]
if holder and (holder ~= owner or response) then return {'stale'} end
redis.call('DEL', record_key)
return {'ok'}
