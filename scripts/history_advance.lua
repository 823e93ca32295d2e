-- history_advance: begins an epoch because the history went back, unless another node did so, and
-- writes down what was lost.
-- INCLUDES  loss
-- FLAGS     allow-oom
-- KEYS      1 meta  2 losses
-- ARGV      1 known_epoch  2 at_ms  3 node: a name of letters and digits  then for each game its
--           id, the number of the last entry that was there, the number of the last that is, and
--           how many of the lost ones the node had acknowledged ('' when it does not know)
-- CONFIRM   no: an epoch that is lost again is begun again
-- RETURNS   ok
-- INVARIANT the epoch only rises
known_epoch = tonumber(known_epoch)

local epoch = tonumber(redis.call('HGET', meta_key, 'epoch') or '1')
if epoch <= known_epoch then
  epoch = known_epoch + 1
  redis.call('HSET', meta_key, 'epoch', string.format('%d', epoch))
end
for i = NEXT_ARG, #ARGV, 4 do
  write_loss(losses_key, string.format('%d', epoch), ARGV[i], at_ms, node, ARGV[i + 1], ARGV[i + 2], ARGV[i + 3])
end
return {'ok', string.format('%d', epoch)}
