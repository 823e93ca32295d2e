-- limit_take: takes as many permits of a rate limit as there are, up to a number, or changes nothing.
-- KEYS  1 rate
-- ARGV  1 µs for one permit  2 burst  3 permits wanted
-- GIVES ok rate_limited
-- KEEPS in any time no more permits are given than the burst and what grew back in that time
-- The whole state is one number, the theoretical arrival time of the generic cell rate algorithm (ITU-T I.371): when the bucket
-- is full again. It answers ok, permits, permits left, µs until full; or rate_limited, µs until the next permit, µs until full.
local rate = KEYS[1]
local each, burst, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local full = math.max(now, tonumber(redis.call('GET', rate) or '0'))
local free = math.floor((now + each * burst - full) / each)
if free < 1 then
  return {'rate_limited', string.format('%.0f', full + each - each * burst - now), string.format('%.0f', full - now)}
end
local given = math.min(free, wanted)
full = full + each * given
redis.call('SET', rate, string.format('%.0f', full), 'PX', string.format('%.0f', math.ceil((full - now) / 1000)))
return {'ok', string.format('%.0f', given), string.format('%.0f', free - given), string.format('%.0f', full - now)}
