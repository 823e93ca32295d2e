-- migration_close: closes the ledger of layout 1, to which nothing can be appended afterwards, or
-- changes nothing.
-- KEYS      1 old_totals  2 old_ledger
-- ARGV      1 deadline_ms  2 number: of the last entry that was migrated
-- LEDGER    never: it closes a ledger of an older layout
-- RETURNS   ok stale
-- INVARIANT no money of the old layout moved after it was migrated
deadline_ms = tonumber(deadline_ms)
local last_id = '18446744073709551615-18446744073709551615'

local clock = redis.call('TIME')
if clock[1] * 1000 + clock[2] / 1000 > deadline_ms then return {'stale'} end
if #redis.call('XRANGE', old_ledger_key, last_id, last_id) == 1 then return {'ok'} end
if (redis.call('HGET', old_totals_key, 'seq') or '0') ~= number then return {'stale'} end
redis.call('XADD', old_ledger_key, last_id, 'closed', '1')
return {'ok'}
