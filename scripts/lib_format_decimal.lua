-- lib_format_decimal: prints minor units as a JSON number without rounding: ('2500000', 6) is
-- 2.5.
local function format_decimal(units, decimals)
  if units == '0' or decimals == '0' then return units end
  local places, sign = tonumber(decimals), ''
  if #units <= places + 1 then -- 5 is 0.05, and so is -5 but for its sign
    if string.byte(units) == 45 then sign = '-'; units = string.sub(units, 2) end
    units = string.rep('0', places + 1 - #units) .. units
  end
  local fraction = string.sub(units, -places)
  if string.byte(fraction, -1) == 48 then fraction = string.match(fraction, '^(.-)0*$') end
  if fraction == '' then return sign .. string.sub(units, 1, -places - 1) end
  return sign .. string.sub(units, 1, -places - 1) .. '.' .. fraction
end
