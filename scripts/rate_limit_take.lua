-- rate_limit_take: takes as many permits of a rate limit as there are, up to a number, or changes
-- nothing.
-- INCLUDES  int_to_string
-- KEYS      1 rate
-- ARGV      1 µs for one permit  2 burst  3 permits wanted
-- RETURNS   ok rate_limited
-- INVARIANT in any time no more permits are given than the burst and what grew back in that time
-- The whole state is one number, the theoretical arrival time of the generic cell rate algorithm
-- (ITU-T I.371): when the bucket is full again. It returns ok, permits, permits left, µs until
-- full; or rate_limited, µs until the next permit, µs until full.
local rate_key = KEYS[1]
local interval, burst, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local full_at = math.max(now, tonumber(redis.call('GET', rate_key) or '0'))
local available = math.floor((now + interval * burst - full_at) / interval)
if available < 1 then
  return {'rate_limited', int_to_string(full_at + interval - interval * burst - now), int_to_string(full_at - now)}
end
local taken = math.min(available, wanted)
full_at = full_at + interval * taken
redis.call('SET', rate_key, int_to_string(full_at), 'PX', int_to_string(math.ceil((full_at - now) / 1000)))
return {'ok', int_to_string(taken), int_to_string(available - taken), int_to_string(full_at - now)}
