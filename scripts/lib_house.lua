-- lib_house: what the operator's account has.
-- INCLUDES  amounts
-- read_house returns the units of a token that the house has, or nil when more entries of the ledger
-- than most are not folded into the totals yet: an entry is parsed for each.
local function read_house(totals_key, ledger_key, base_key, token, most)
  local fields = redis.call('HMGET', totals_key, 'house:' .. token, 'folded')
  local first = (fields[2] or 0) - (redis.call('GET', base_key) or 0)
  if redis.call('LLEN', ledger_key) - first > tonumber(most) then return nil end
  local came, went = string.match(fields[1] or '0', '^%d+$') or '0', '0'
  for _, entry in ipairs(redis.call('LRANGE', ledger_key, string.format('%.0f', first), '-1')) do
    local code, postings = string.match(entry, '^[^|]*|[^|]*|([^|]*)|[^|]*|[^|]*|(.*)$')
    if code == token then
      for sign, units in string.gmatch(';' .. postings, ';h:(%-?)(%d+)') do
        if sign == '' then came = add_amounts(came, units) else went = add_amounts(went, units) end
      end
    end
  end
  return has_at_least(came, went) and subtract_amounts(came, went) or '0'
end
