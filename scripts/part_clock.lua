-- clock: Redis' own time, so that all nodes share one clock, and numbers that print whole.
-- gives now_ms, whole(n), iso(ms)
local now_pair = redis.call('TIME')
local now_ms = tonumber(now_pair[1]) * 1000 + math.floor(tonumber(now_pair[2]) / 1000)

-- whole prints an integer without an exponent; exact to 2^53 - 1. tostring() would print 1e+14.
local function whole(n) return string.format('%.0f', n) end

-- iso prints ms since 1970 as 2026-11-20T17:32:26.123Z; the last text is kept, since most are the present. The date is Howard Hinnant's
-- civil_from_days (public domain): eras of 400 years, years that start in March.
local iso_ms, iso_text
local function iso(ms)
  if ms == iso_ms then return iso_text end
  local days = math.floor(ms / 86400000)
  local rest = ms - days * 86400000
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local day = doy - math.floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  iso_ms, iso_text = ms, string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day,
    math.floor(rest / 3600000), math.floor(rest / 60000) % 60, math.floor(rest / 1000) % 60, rest % 1000)
  return iso_text
end
