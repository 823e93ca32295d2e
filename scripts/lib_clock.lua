-- lib_clock: the store's own time, so that all nodes share one clock.
-- read_clock returns the milliseconds since 1970 as a number and as text.
local function read_clock()
  local time = redis.call('TIME')
  local ms = time[1] * 1000 + math.floor(time[2] / 1000)
  return ms, string.format('%d', ms)
end
