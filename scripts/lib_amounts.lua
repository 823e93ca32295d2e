-- lib_amounts: exact arithmetic on amounts, decimal texts of minor units from 0 to 2^63 - 1.
-- Lua's numbers are exact to 2^53 - 1, which winnings may pass. So amounts are compared as texts,
-- and those of more than 15 digits are added in two limbs, of which the lower has nine digits.

-- has_at_least reports whether a balance covers an amount.
local function has_at_least(balance, amount)
  if #balance ~= #amount then return #balance > #amount end
  return balance >= amount
end

local function split_limbs(amount)
  return tonumber(string.sub(amount, 1, -10)) or 0, tonumber(string.sub(amount, -9))
end

local function join_limbs(high, low)
  if high == 0 then return string.format('%d', low) end
  return string.format('%d%09d', high, low)
end

-- add_amounts returns a + b.
local function add_amounts(a, b)
  if #a <= 15 and #b <= 15 then return string.format('%d', a + b) end
  local high_a, low_a = split_limbs(a)
  local high_b, low_b = split_limbs(b)
  local high, low = high_a + high_b, low_a + low_b
  if low >= 1000000000 then high, low = high + 1, low - 1000000000 end
  return join_limbs(high, low)
end

-- subtract_amounts returns a - b; a must be at least b.
local function subtract_amounts(a, b)
  if #a <= 15 then return string.format('%d', a - b) end
  local high_a, low_a = split_limbs(a)
  local high_b, low_b = split_limbs(b)
  local high, low = high_a - high_b, low_a - low_b
  if low < 0 then high, low = high - 1, low + 1000000000 end
  return join_limbs(high, low)
end
