-- rate_limit_take: charges permits that a node has used already, then takes as many as there are,
-- up to a number, or changes nothing.
-- INCLUDES  int_to_string skewed_clock
-- KEYS      1 rate
-- ARGV      1 interval: µs for one permit  2 burst  3 wanted: permits wanted, 0 to take none
--           4 used: permits used already  5 node_ms: the time of the node
-- CONFIRM   no: a permit may be given twice
-- RETURNS   ok rate_limited stale
-- INVARIANT in any time, no permit is taken after the burst and what grew back are taken or charged
-- The whole state is one number, the theoretical arrival time of the generic cell rate algorithm
-- (ITU-T I.371): when the bucket is full again. Charged permits can move it further than an empty
-- bucket needs. Then nothing can be taken until the excess has grown back. It returns ok or
-- rate_limited, permits taken, µs until full. Stale with "clock" means that the clocks of store and
-- node differ: a time that is written by a wrong clock would refuse requests for as long as it was
-- ahead. Nodes that had the same wrong clock have written one: a bucket whose excess is more than
-- four bursts, and than what grows back in a minute, counts as empty.
interval, burst, wanted, used = tonumber(interval), tonumber(burst), tonumber(wanted), tonumber(used)

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
if is_skewed(now / 1000, node_ms) then return {'stale', 'clock'} end
local full_at = tonumber(redis.call('GET', rate_key) or '0')
local empty_until = now + interval * burst
local is_from_ahead = full_at > empty_until + math.max(4 * interval * burst, 60000000)
if is_from_ahead then full_at = empty_until end
full_at = math.max(now, full_at) + interval * used
local available = math.floor((empty_until - full_at) / interval)
local taken = math.max(0, math.min(available, wanted))
full_at = full_at + interval * taken
if used + taken > 0 or is_from_ahead then
  redis.call('SET', rate_key, int_to_string(full_at), 'PX', int_to_string(math.ceil((full_at - now) / 1000)))
end
if wanted > 0 and taken == 0 then
  return {'rate_limited', '0', int_to_string(full_at - now)}
end
return {'ok', int_to_string(taken), int_to_string(full_at - now)}
