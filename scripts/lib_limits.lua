-- lib_limits: the limits that players set for their own stakes.
-- They are in the wallet: ":excluded" is the time until which the player takes part in no paid
-- room, '0' for none, and ":limits:<token>" is packed as the list wallet_limits says. Both are read
-- only for a player whose balance has the flag of read_balance.

-- current_limit returns a limit as it counts now, '' for none, with the looser one that is to
-- follow and from when.
local function current_limit(limit, next_limit, from, now_ms)
  if from ~= '' and now_ms >= tonumber(from) then return next_limit, '', '' end
  return limit, next_limit, from
end

-- bound keeps a sum within 2^53 - 1, where it is exact; no limit is higher.
local function bound(sum)
  return math.max(-9007199254740991, math.min(9007199254740991, sum))
end
