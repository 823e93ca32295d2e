-- lib_clock: reads Redis' own time, so that all nodes share one clock.
local clock = redis.call('TIME')
local now_text = clock[1] .. string.format('%03d', math.floor(clock[2] / 1000)) -- ms since 1970
local now_ms = tonumber(now_text)
