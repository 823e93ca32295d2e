-- presence_claim: ends a lease that is over, so that it cannot be renewed any more; or changes
-- nothing.
-- INCLUDES  clock
-- FLAGS     allow-oom
-- KEYS      1 leases
-- ARGV      1 id of the lease
-- RETURNS   ok stale
-- INVARIANT no lease ends before its time by the store's clock
local leases_key = KEYS[1]
local lease = ARGV[1]

local over_ms = redis.call('ZSCORE', leases_key, lease)
local now_ms = read_clock()
if not over_ms or tonumber(over_ms) < 0 or tonumber(over_ms) > now_ms then return {'stale'} end
redis.call('ZADD', leases_key, '0', lease)
return {'ok'}
