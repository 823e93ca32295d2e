-- fencing_token_issue: issues a fencing token to the holder of a lock, or changes nothing.
-- INCLUDES  int_to_string
-- FLAGS     allow-oom
-- KEYS      1 lock  2 fence
-- ARGV      1 value: of the lock
-- CONFIRM   no: a lease lasts for seconds
-- RETURNS   ok stale
-- INVARIANT tokens only grow, and one is issued only while the lock holds the caller's value
if redis.call('GET', lock_key) ~= value then return {'stale'} end
return {'ok', int_to_string(redis.call('INCR', fence_key))}
