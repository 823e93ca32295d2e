-- presence_renew: makes the lease of a node last, or changes nothing when the lease has ended.
-- INCLUDES  clock
-- FLAGS     allow-oom
-- KEYS      1 leases  2 shards_of_the_lease
-- ARGV      1 lease: id of the lease  2 lease_ms: how long it lasts  3 shards: how many shards the
--           node uses
-- CONFIRM   no: a node repeats it every few seconds
-- RETURNS   ok stale
-- INVARIANT a lease that has ended does not last again; none lasts more than a minute longer than
--           this one
-- Behind ok follow 1 when the shards have to be stored again, else 0; and the ids of at most 100
-- leases that are over.
if tonumber(redis.call('ZSCORE', leases_key, lease) or '1') <= 0 then return {'stale'} end
local now_ms, now = read_clock()
redis.call('ZADD', leases_key, string.format('%d', now_ms + lease_ms), lease)
local is_missing = redis.call('SCARD', shards_of_the_lease_key) ~= tonumber(shards)
-- A node that died while the clock was ahead would keep its players for as long as it was.
local ahead = string.format('(%d', now_ms + lease_ms + 60000)
for _, late in ipairs(redis.call('ZRANGEBYSCORE', leases_key, ahead, '+inf', 'LIMIT', '0', '100')) do
  redis.call('ZADD', leases_key, string.format('%d', now_ms + lease_ms), late)
end
local reply = {'ok', is_missing and '1' or '0'}
for _, over in ipairs(redis.call('ZRANGEBYSCORE', leases_key, '0', now, 'LIMIT', '0', '100')) do
  reply[#reply + 1] = over
end
return reply
