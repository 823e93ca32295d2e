-- migration_lease: takes the lease of a migration or makes it longer, or changes nothing while
-- another process has it. A lease that is over is not made longer: another process may have had it
-- meanwhile. It returns the time in ms until which scripts of the holder may write, or for how many
-- ms the other still has it.
-- KEYS      1 lock
-- ARGV      1 value: of the lock  2 lease_ms: 0 to give it up  3 is_held: is it held, '1' to renew
--           it
-- CONFIRM   no: a lease lasts for seconds
-- RETURNS   ok stale
-- INVARIANT the holder may write for half of the lease, so that its last write is over, by the
--           clock of any server, before another process gets the lease
local holder = redis.call('GET', lock_key)
if holder and holder ~= value then return {'stale', string.format('%d', redis.call('PTTL', lock_key))} end
if lease_ms == '0' then
  redis.call('DEL', lock_key)
  return {'ok', '0'}
end
if is_held == '1' and not holder then return {'stale', '0'} end
local clock = redis.call('TIME')
redis.call('SET', lock_key, value, 'PX', lease_ms)
return {'ok', string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000) + math.floor(lease_ms / 2))}
