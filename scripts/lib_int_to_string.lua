-- lib_int_to_string: prints an integer without an exponent, exact to 2^53 - 1.
-- tostring() prints 1e+14. '%d' is three times as fast as '%.0f', but is sure of 32 bits only.
local function int_to_string(n)
  if n < 2147483648 and n > -2147483648 then return string.format('%d', n) end
  return string.format('%.0f', n)
end
