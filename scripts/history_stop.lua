-- history_stop: stops money on all nodes until an operator accepts the store, or changes nothing
-- when one did meanwhile.
-- FLAGS     allow-oom
-- KEYS      1 meta
-- ARGV      1 seen_epoch: that the caller read in the store, 0 for none  2 stop: as JSON
-- RETURNS   ok stale
local meta_key = KEYS[1]
local seen_epoch, stop = tonumber(ARGV[1]), ARGV[2]

if tonumber(redis.call('HGET', meta_key, 'epoch') or '0') > seen_epoch then return {'stale'} end
redis.call('HSETNX', meta_key, 'stopped', stop)
return 'ok'
