-- lib_is_at_least: reports whether a stored balance (or false) is at least units, an amount >= 0.
-- Both are compared as texts: a balance may pass 2^53 - 1, up to which Lua's numbers are exact.
local function is_at_least(balance, units)
  if units == '0' then return true end
  if not balance or string.byte(balance, 1) == 45 then return false end
  if #balance ~= #units then return #balance > #units end
  return balance >= units
end
