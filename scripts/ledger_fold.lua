-- ledger_fold: adds ledger entries that are not in the totals yet to them, a bounded number at once.
-- KEYS  1 totals 2 ledger 3 ledger_base 4 fence
-- ARGV  1 holder (fence of the leader) 2 most entries
-- RETURNS ok stale
-- INVARIANT totals are the sums of the entries 1 to folded; a leader that was followed by another one changes nothing
local totals_key, ledger_key, base_key, fence_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local holder, most = ARGV[1], tonumber(ARGV[2])

local newest = redis.call('GET', fence_key)
if newest and tonumber(holder) < tonumber(newest) then return {'stale'} end
local folded, base = tonumber(redis.call('HGET', totals_key, 'folded') or '0'), tonumber(redis.call('GET', base_key) or '0')
local entries = redis.call('LRANGE', ledger_key, folded - base, folded - base + most - 1)
local accounts = {w = 'wallets:', e = 'escrow:', h = 'house:', p = 'prizes:'}
redis.call('SET', fence_key, holder)
for _, entry in ipairs(entries) do
  local token, postings = string.match(entry, '^%d+|[^|]*|([^|]*)|.*|([^|]*)$')
  for account, units in string.gmatch(postings, '(%a)%d*:(-?%d+)') do
    -- HINCRBY adds int64 exactly; Lua's numbers would not.
    if accounts[account] then redis.call('HINCRBY', totals_key, accounts[account] .. token, units) end
  end
end
folded = string.format('%d', folded + #entries)
redis.call('HSET', totals_key, 'folded', folded)
return {'ok', folded, string.format('%d', #entries)}
