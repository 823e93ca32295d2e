-- trail_append: appends a record to the trail of staff writes and drops the oldest ones beyond the
-- most that are kept, or changes nothing when this call has appended it. A full store takes records
-- too: what was changed must not be hidden by filling the store.
-- INCLUDES  clock
-- FLAGS     allow-oom
-- KEYS      1 records  2 number_of_the_last_record  3 mark_of_the_call  4 games_with_records
-- ARGV      1 act  2 most: most records  3 mark_ms: for how long the mark stays in ms  4 game: game
--           of the server ('' of an operator)
-- RETURNS   ok replay
-- INVARIANT numbers rise by one with every record of the installation, in every list; the games
--           with records are those of the lists
if redis.call('EXISTS', mark_of_the_call_key) == 1 then return {'replay'} end
local _, now = read_clock()
local number = redis.call('INCR', number_of_the_last_record_key)
redis.call('XADD', records_key, 'MAXLEN', most, string.format('%d-0', number), 'at', now, 'act', act)
if game ~= '' then redis.call('SADD', games_with_records_key, game) end
redis.call('SET', mark_of_the_call_key, '1', 'PX', mark_ms)
return {'ok'}
