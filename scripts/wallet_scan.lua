-- wallet_scan: lists some wallets of the economy, and where to go on; it changes nothing.
-- It is a script so that a Cluster runs it on the node that holds the economy.
-- KEYS      1 totals
-- ARGV      1 cursor  2 prefix of the wallets' keys  3 how many keys to scan
-- RETURNS   ok
local cursor, prefix, count = ARGV[1], ARGV[2], ARGV[3]

local page = redis.call('SCAN', cursor, 'MATCH', prefix .. '*', 'COUNT', count)
local reply = {'ok', page[1]}
for _, key in ipairs(page[2]) do
  if not string.find(key, '%D', #prefix + 1) then reply[#reply + 1] = key end
end
return reply
