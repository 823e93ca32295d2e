-- lock_acquire: takes a lock for a time, or changes nothing while somebody else has it. A lease
-- longer than the caller's own is shortened to that. Without a lock nothing would be swept, so a
-- full store takes one too.
-- FLAGS     allow-oom
-- KEYS      1 lock
-- ARGV      1 value: of the lock  2 lease_ms
-- CONFIRM   no: a lease lasts for seconds
-- RETURNS   ok stale
-- INVARIANT a lock has one value until its lease is over or it is released; a resend is ok
if redis.call('SET', lock_key, value, 'NX', 'PX', lease_ms) then return {'ok'} end
if redis.call('GET', lock_key) == value then return {'ok'} end
-- A lease that was taken while the store's clock was ahead would last until then.
if redis.call('PTTL', lock_key) > tonumber(lease_ms) then redis.call('PEXPIRE', lock_key, lease_ms) end
return {'stale'}
