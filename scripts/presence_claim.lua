-- presence_claim: ends a lease that is over, so that it cannot be renewed any more; or changes
-- nothing.
-- INCLUDES  clock skewed_clock
-- FLAGS     allow-oom
-- KEYS      1 leases
-- ARGV      1 lease: id of the lease  2 node_ms: the time of the node
-- CONFIRM   no: a node repeats it
-- RETURNS   ok stale
-- INVARIANT no lease ends before its time by the store's clock
-- Stale with "clock" means that the clocks of store and node differ.
local over_ms = redis.call('ZSCORE', leases_key, lease)
local now_ms = read_clock()
if is_skewed(now_ms, node_ms) then return {'stale', 'clock'} end
if not over_ms or tonumber(over_ms) < 0 or tonumber(over_ms) > now_ms then return {'stale'} end
redis.call('ZADD', leases_key, '0', lease)
return {'ok'}
