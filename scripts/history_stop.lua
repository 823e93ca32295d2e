-- history_stop: stops money on all nodes until an operator accepts the store, and writes down what
-- the caller misses; or changes nothing when an operator accepted it meanwhile.
-- FLAGS     allow-oom
-- KEYS      1 meta  2 losses
-- ARGV      1 seen_epoch: that the caller read in the store, 0 for none  2 stop: as JSON
--           3 missing_epoch: under which losses are written  4 at_ms  then for each game its id,
--           the number of the last entry that was there, and the number of the last that is
-- RETURNS   ok stale
local meta_key, losses_key = KEYS[1], KEYS[2]
local seen_epoch, stop, missing_epoch, at_ms = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]

if tonumber(redis.call('HGET', meta_key, 'epoch') or '0') > seen_epoch then return {'stale'} end
redis.call('HSETNX', meta_key, 'stopped', stop)
for i = 5, #ARGV, 3 do
  local field = missing_epoch .. ':' .. ARGV[i]
  local was = string.match(redis.call('HGET', losses_key, field) or '', '^(%d+)|')
  if not was or tonumber(was) < tonumber(ARGV[i + 1]) then
    redis.call('HSET', losses_key, field, ARGV[i + 1] .. '|' .. ARGV[i + 2] .. '|' .. at_ms)
  end
end
return 'ok'
