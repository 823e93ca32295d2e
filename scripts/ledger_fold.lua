-- ledger_fold: adds the sums of the ledger entries that follow the folded ones to the totals, or
-- changes nothing. The caller has summed them up: to parse entries here would cost ten times more.
-- FLAGS     allow-oom
-- KEYS      1 totals  2 ledger_base  3 fence  4 ledger
-- ARGV      1 fence: '' outside of the leader's work  2 before: number of the last entry that was
--           folded before  3 base: the ledger's base, with which the entries were read  4 after:
--           number of the last entry that is in the sums  5 last_text: that entry  then pairs of a
--           total and by how much it changes
-- LEDGER    never: it reads the entries
-- CONFIRM   no: the entries can be added up again
-- RETURNS   ok stale
-- INVARIANT wallets, escrow, house and prizes are the sums of the entries 1 to folded; a leader
--           that was followed by another one changes nothing
local newest = redis.call('GET', fence_key)
if fence ~= '' and newest and tonumber(fence) < tonumber(newest) then return {'stale'} end
if (redis.call('HGET', totals_key, 'folded') or '0') ~= before then return {'stale'} end
if (redis.call('GET', ledger_base_key) or '0') ~= base then return {'stale'} end
-- A store that was emptied since, or another one in its place, has nothing to fold there.
if redis.call('LINDEX', ledger_key, after - base - 1) ~= last_text then return {'stale'} end

for i = NEXT_ARG, #ARGV, 2 do redis.call('HINCRBY', totals_key, ARGV[i], ARGV[i + 1]) end
redis.call('HSET', totals_key, 'folded', after)
if fence ~= '' and fence ~= newest then redis.call('SET', fence_key, fence) end
return 'ok'
