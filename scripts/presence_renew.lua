-- presence_renew: makes the lease of a node last, or changes nothing when the lease has ended.
-- INCLUDES  clock
-- FLAGS     allow-oom
-- KEYS      1 leases  2 shards of the lease
-- ARGV      1 id of the lease  2 lease_ms: how long it lasts  3 how many shards the node uses
-- RETURNS   ok stale
-- INVARIANT a lease that has ended does not last again
-- Behind ok follow 1 when the shards have to be stored again, else 0; how many leases last, this
-- one among them; and the ids of at most 100 leases that are over.
local leases_key, shards_key = KEYS[1], KEYS[2]
local lease, lease_ms, shards = ARGV[1], ARGV[2], ARGV[3]

if tonumber(redis.call('ZSCORE', leases_key, lease) or '1') <= 0 then return {'stale'} end
local now_ms, now = read_clock()
redis.call('ZADD', leases_key, string.format('%d', now_ms + lease_ms), lease)
local is_missing = redis.call('SCARD', shards_key) ~= tonumber(shards)
local lasting = redis.call('ZCOUNT', leases_key, '(' .. now, '+inf')
local reply = {'ok', is_missing and '1' or '0', string.format('%d', lasting)}
for _, over in ipairs(redis.call('ZRANGEBYSCORE', leases_key, '0', now, 'LIMIT', '0', '100')) do
  reply[#reply + 1] = over
end
return reply
