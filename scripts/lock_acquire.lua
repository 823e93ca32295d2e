-- lock_acquire: takes a lock for a time, or changes nothing while somebody else has it. Without a
-- lock nothing would be swept, so a full store takes one too.
-- FLAGS     allow-oom
-- KEYS      1 lock
-- ARGV      1 value of the lock  2 lease in ms
-- RETURNS   ok stale
-- INVARIANT a lock has one value until its lease is over or it is released; a resend is ok
local lock_key = KEYS[1]
local value, lease_ms = ARGV[1], ARGV[2]

if redis.call('SET', lock_key, value, 'NX', 'PX', lease_ms) then return {'ok'} end
if redis.call('GET', lock_key) == value then return {'ok'} end
return {'stale'}
