-- lib_day_mints: what the game's server keys, or its sign-up grants, mint in a day.
-- INCLUDES  clock amounts
-- count_day_mints returns what the field of a token in the mints of one of them is once it mints
-- units more, or nil when it would mint more than the limit in a day. It writes nothing.
local function count_day_mints(mints_key, token, units, limit)
  local now = read_clock()
  local day = string.format('%d', math.floor(now / 86400000))
  local last_day, minted = string.match(redis.call('HGET', mints_key, token) or '', '^(%d+)|(%d+)$')
  local of_day = last_day == day and add_amounts(minted, units) or units
  return has_at_least(limit, of_day) and day .. '|' .. of_day or nil
end
