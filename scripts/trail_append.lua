-- trail_append: appends a record to the trail of staff writes and drops the oldest ones beyond the
-- most that are kept, or changes nothing when this call has appended it. A full store takes records
-- too: what was changed must not be hidden by filling the store.
-- INCLUDES  clock
-- FLAGS     allow-oom
-- KEYS      1 records  2 number of the last record  3 mark of the call  4 games with records
-- ARGV      1 act  2 most records  3 for how long the mark stays in ms  4 game of the server ('' of
--           an operator)
-- RETURNS   ok replay
-- INVARIANT numbers rise by one with every record of the installation, in every list; the games
--           with records are those of the lists
local records_key, number_key, mark_key, games_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local act, most, mark_ms, game = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if redis.call('EXISTS', mark_key) == 1 then return {'replay'} end
local _, now = read_clock()
local number = redis.call('INCR', number_key)
redis.call('XADD', records_key, 'MAXLEN', most, string.format('%d-0', number), 'at', now, 'act', act)
if game ~= '' then redis.call('SADD', games_key, game) end
redis.call('SET', mark_key, '1', 'PX', mark_ms)
return {'ok'}
