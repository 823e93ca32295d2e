-- lib_negate: flips the sign of an amount.
local function negate(units)
  if units == '0' then return units end
  if string.byte(units, 1) == 45 then return string.sub(units, 2) end
  return '-' .. units
end
