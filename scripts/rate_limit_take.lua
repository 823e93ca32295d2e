-- rate_limit_take: charges permits that a node has used already, then takes as many as there are,
-- up to a number, or changes nothing.
-- INCLUDES  int_to_string
-- KEYS      1 rate
-- ARGV      1 µs for one permit  2 burst  3 permits wanted, 0 to take none  4 permits used already
-- RETURNS   ok rate_limited
-- INVARIANT in any time, no permit is taken after the burst and what grew back are taken or charged
-- The whole state is one number, the theoretical arrival time of the generic cell rate algorithm
-- (ITU-T I.371): when the bucket is full again. Charged permits can move it further than an empty
-- bucket needs. Then nothing can be taken until the excess has grown back. It returns ok or
-- rate_limited, permits taken, µs until full.
local rate_key = KEYS[1]
local interval, burst, wanted, used = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local full_at = math.max(now, tonumber(redis.call('GET', rate_key) or '0')) + interval * used
local available = math.floor((now + interval * burst - full_at) / interval)
local taken = math.max(0, math.min(available, wanted))
full_at = full_at + interval * taken
if used + taken > 0 then
  redis.call('SET', rate_key, int_to_string(full_at), 'PX', int_to_string(math.ceil((full_at - now) / 1000)))
end
if wanted > 0 and taken == 0 then
  return {'rate_limited', '0', int_to_string(full_at - now)}
end
return {'ok', int_to_string(taken), int_to_string(full_at - now)}
