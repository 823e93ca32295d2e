-- ledger_fold: adds the ledger entries that are not in the totals yet to them, a bounded number at
-- once, or changes nothing.
-- KEYS      1 totals  2 ledger  3 ledger base  4 fence
-- ARGV      1 fence of the leader ('' outside of the leader's work)  2 most entries
-- RETURNS   ok stale
-- INVARIANT wallets, escrow, house and prizes are the sums of the entries 1 to folded; a leader
--           that was followed by another one changes nothing
local totals_key, ledger_key, base_key, fence_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local fence, most = ARGV[1], tonumber(ARGV[2])

local newest = redis.call('GET', fence_key)
if fence ~= '' and newest and tonumber(fence) < tonumber(newest) then return {'stale'} end
local folded = tonumber(redis.call('HGET', totals_key, 'folded') or '0')
local start = folded - (redis.call('GET', base_key) or 0)
if start < 0 then return redis.error_reply('ERR entries left the ledger before they were folded') end
local entries = redis.call('LRANGE', ledger_key, start, start + most - 1)
if #entries == 0 then return {'ok', '0'} end

-- Sums are made in two limbs, of which the lower has nine digits: no sum of a page leaves the
-- numbers that Lua has exactly.
local totals = {w = 'wallets:', e = 'escrow:', h = 'house:', p = 'prizes:'}
local fields, high, low = {}, {}, {}
for _, entry in ipairs(entries) do
  local token, postings = string.match(entry, '^%d+|[^|]*|([^|]*)|[^|]*|[^|]*|(.*)$')
  for account, sign, units in string.gmatch(postings or '', '(%a)%d*:(%-?)(%d+)') do
    local total = totals[account]
    if total then
      local field = total .. token
      if not high[field] then fields[#fields + 1], high[field], low[field] = field, 0, 0 end
      local upper, lower = tonumber(string.sub(units, 1, -10)) or 0, tonumber(string.sub(units, -9))
      if sign == '-' then upper, lower = -upper, -lower end
      high[field], low[field] = high[field] + upper, low[field] + lower
    end
  end
end
for _, field in ipairs(fields) do
  local carry = math.floor(low[field] / 1000000000)
  local upper, lower = high[field] + carry, low[field] - carry * 1000000000 -- lower is at least 0
  if upper < 0 and lower > 0 then upper, lower = upper + 1, lower - 1000000000 end -- one sign
  -- HINCRBY adds what Lua's numbers cannot hold.
  if upper == 0 then
    redis.call('HINCRBY', totals_key, field, string.format('%d', lower))
  else
    redis.call('HINCRBY', totals_key, field, string.format('%d%09d', upper, math.abs(lower)))
  end
end
redis.call('HSET', totals_key, 'folded', string.format('%d', folded + #entries))
if fence ~= '' and fence ~= newest then redis.call('SET', fence_key, fence) end
return {'ok', string.format('%d', #entries)}
