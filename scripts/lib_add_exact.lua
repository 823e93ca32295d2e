-- lib_add_exact: adds two amounts >= 0 exactly, in two limbs of which the lower has nine digits.
-- INCLUDES  int_to_string
local function add_exact(a, b)
  local low = tonumber(string.sub(a, -9)) + tonumber(string.sub(b, -9))
  local high = (tonumber(string.sub(a, 1, -10)) or 0) + (tonumber(string.sub(b, 1, -10)) or 0)
  if low >= 1000000000 then low = low - 1000000000; high = high + 1 end
  if high == 0 then return int_to_string(low) end
  return int_to_string(high) .. string.format('%09.0f', low)
end
