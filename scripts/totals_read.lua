-- totals_read: returns the totals of a game and the ledger entries that are not in them yet, at one
-- instant; it changes nothing.
-- FLAGS     no-writes
-- KEYS      1 totals  2 ledger  3 ledger_base
-- ARGV      1 most_entries
-- RETURNS   ok stale
-- ok is followed by the number of the last ledger entry, how many fields of the totals follow, the
-- fields and their values by turns, and the entries. stale means that there are more entries than
-- asked for: fold first.
most_entries = tonumber(most_entries)

local folded = redis.call('HGET', totals_key, 'folded') or 0
local base = redis.call('GET', ledger_base_key) or 0
local start, length = folded - base, redis.call('LLEN', ledger_key)
if start < 0 then return redis.error_reply('ERR entries left the ledger before they were folded') end
if length - start > most_entries then return {'stale'} end
local totals = redis.call('HGETALL', totals_key)
local reply = {'ok', string.format('%d', base + length), string.format('%d', #totals / 2)}
for _, text in ipairs(totals) do reply[#reply + 1] = text end
for _, entry in ipairs(redis.call('LRANGE', ledger_key, start, -1)) do reply[#reply + 1] = entry end
return reply
