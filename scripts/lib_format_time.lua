-- lib_format_time: prints ms since 1970 as 2026-11-20T17:32:26.123Z.
-- The last text is kept, since most calls print the present. The date is Howard Hinnant's
-- civil_from_days (public domain): eras of 400 years, years that start in March.
local last_ms, last_text
local function format_time(ms)
  if ms == last_ms then return last_text end
  local floor = math.floor
  local ms_of_day = ms % 86400000
  local z = (ms - ms_of_day) / 86400000 + 719468
  local doe = z % 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local mp = floor((5 * doy + 2) / 153)
  local day = doy - floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + (z - doe) / 146097 * 400 + (month <= 2 and 1 or 0)
  last_ms, last_text = ms, string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day,
    floor(ms_of_day / 3600000), floor(ms_of_day / 60000) % 60, floor(ms_of_day / 1000) % 60, ms_of_day % 1000)
  return last_text
end
