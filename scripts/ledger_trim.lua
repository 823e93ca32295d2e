-- ledger_trim: removes the oldest entries of a game's ledger, which the archive has as a segment,
-- or changes nothing. Entries that are not folded stay: the totals are their sums.
-- FLAGS     allow-oom
-- KEYS      1 ledger  2 ledger_base  3 totals  4 archive
-- ARGV      1 fence: '' outside of the leader's work  2 before: the ledger's base before  3 count:
--           how many entries  4 last_text: the last one  5 previous_sum: sum of the segment before
--           ('' for the first)  6 sum: of the segment
-- LEDGER    never: it removes the entries that the archive has
-- RETURNS   ok stale
-- INVARIANT the ledger starts with the entry that follows the segment of that sum; a leader that
--           was followed by another one changes nothing
local archived = redis.call('HMGET', archive_key, 'sum', 'fence')
local base = redis.call('GET', ledger_base_key) or '0'
local after = string.format('%.0f', before + count)
if base == after and archived[1] == sum then return 'ok' end
if fence ~= '' and archived[2] and tonumber(fence) < tonumber(archived[2]) then return 'stale' end
if base ~= before or (archived[1] or '') ~= previous_sum then return 'stale' end
if tonumber(redis.call('HGET', totals_key, 'folded') or '0') < tonumber(after) then return 'stale' end
if redis.call('LINDEX', ledger_key, count - 1) ~= last_text then return 'stale' end

redis.call('LTRIM', ledger_key, count, -1)
redis.call('SET', ledger_base_key, after)
redis.call('HSET', archive_key, 'sum', sum)
if fence ~= '' then redis.call('HSET', archive_key, 'fence', fence) end
return 'ok'
