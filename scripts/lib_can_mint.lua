-- lib_can_mint: reports whether units of a token may be added to a wallet from outside.
-- INCLUDES  is_at_least add_exact
-- The player then has at most 2^53 - 1, held units included, and of the token there are at most
-- 4e18, so that no sum leaves Redis' integers.
local function can_mint(wallet, totals, token, units)
  local balance = redis.call('HMGET', wallet, 'free:' .. token, 'held:' .. token)
  local minted = redis.call('HGET', totals, 'minted:' .. token) or '0'
  return is_at_least('9007199254740991', add_exact(add_exact(balance[1] or '0', balance[2] or '0'), units)) and
    is_at_least('4000000000000000000', add_exact(minted, units))
end
