-- history_stop: stops money on all nodes until an operator accepts the store, and writes down what
-- the caller misses; or changes nothing when an operator accepted it meanwhile.
-- INCLUDES  loss
-- FLAGS     allow-oom
-- KEYS      1 meta  2 losses
-- ARGV      1 seen_epoch: that the caller read in the store, 0 for none  2 stop: as JSON
--           3 missing_epoch: under which losses are written  4 at_ms  5 node: a name of letters and
--           digits  then for each game its id, the number of the last entry that was there, the
--           number of the last that is, and how many of the lost ones the node had acknowledged (''
--           when it does not know)
-- CONFIRM   no: each node stops money by itself, and writes it again
-- RETURNS   ok stale
seen_epoch = tonumber(seen_epoch)

if tonumber(redis.call('HGET', meta_key, 'epoch') or '0') > seen_epoch then return {'stale'} end
redis.call('HSETNX', meta_key, 'stopped', stop)
for i = NEXT_ARG, #ARGV, 4 do
  write_loss(losses_key, missing_epoch, ARGV[i], at_ms, node, ARGV[i + 1], ARGV[i + 2], ARGV[i + 3])
end
return 'ok'
