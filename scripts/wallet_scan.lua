-- wallet_scan: names some wallets of the economy, and where to go on; it changes nothing.
-- It is a script so that a Cluster answers from the node that holds the economy.
-- KEYS  1 totals
-- ARGV  1 cursor  2 what the wallets' names start with  3 how many keys to look at
-- GIVES ok
local cursor, prefix, count = ARGV[1], ARGV[2], ARGV[3]

local found = redis.call('SCAN', cursor, 'MATCH', prefix .. '*', 'COUNT', count)
local answer = {'ok', found[1]}
for _, name in ipairs(found[2]) do
  if not string.find(name, '%D', #prefix + 1) then answer[#answer + 1] = name end
end
return answer
