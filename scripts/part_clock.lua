-- clock: Redis' own time, so that all nodes share one clock, and numbers that print whole.
-- gives now (ms as text), now_ms (the same as a number), whole(n), iso(ms)
local now_pair = redis.call('TIME')
local now = now_pair[1] .. string.format('%03d', math.floor(now_pair[2] / 1000))
local now_ms = tonumber(now)

-- whole prints an integer without an exponent; exact to 2^53 - 1. tostring() would print 1e+14. '%d' is three times as fast, but
-- knows only 32 bits where Redis was built for them.
local function whole(n)
  if n < 2147483648 and n > -2147483648 then return string.format('%d', n) end
  return string.format('%.0f', n)
end

-- iso prints ms since 1970 as 2026-11-20T17:32:26.123Z; the last text is kept, since most are the present. The date is Howard Hinnant's
-- civil_from_days (public domain): eras of 400 years, years that start in March.
local iso_ms, iso_text
local function iso(ms)
  if ms == iso_ms then return iso_text end
  local floor = math.floor
  local rest = ms % 86400000
  local z = (ms - rest) / 86400000 + 719468
  local doe = z % 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local mp = floor((5 * doy + 2) / 153)
  local day = doy - floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + (z - doe) / 146097 * 400 + (month <= 2 and 1 or 0)
  iso_ms, iso_text = ms, string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day,
    floor(rest / 3600000), floor(rest / 60000) % 60, floor(rest / 1000) % 60, rest % 1000)
  return iso_text
end
