-- history_advance: begins an epoch because the history went back, unless another node did so, and
-- writes down what was lost.
-- FLAGS     allow-oom
-- KEYS      1 meta  2 losses
-- ARGV      1 known_epoch  2 at_ms  then for each game its id, the number of
--           the last entry that was there, and the number of the last that is
-- RETURNS   ok
-- INVARIANT the epoch only rises
local meta_key, losses_key = KEYS[1], KEYS[2]
local known_epoch, at_ms = tonumber(ARGV[1]), ARGV[2]

local epoch = tonumber(redis.call('HGET', meta_key, 'epoch') or '1')
if epoch <= known_epoch then
  epoch = known_epoch + 1
  redis.call('HSET', meta_key, 'epoch', string.format('%d', epoch))
end
for i = 3, #ARGV, 3 do
  local field = string.format('%d', epoch) .. ':' .. ARGV[i]
  local was = string.match(redis.call('HGET', losses_key, field) or '', '^(%d+)|')
  if not was or tonumber(was) < tonumber(ARGV[i + 1]) then
    redis.call('HSET', losses_key, field, ARGV[i + 1] .. '|' .. ARGV[i + 2] .. '|' .. at_ms)
  end
end
return {'ok', string.format('%d', epoch)}
