-- history_accept: makes what the store has the history, by the word of an operator.
-- FLAGS     allow-oom
-- KEYS      1 meta
-- ARGV      1 new_name: for an installation without one  2 least_epoch: that the store must exceed
--           3 former_name: of the installation that it follows, '' for none  4 seen_epoch: that the
--           caller read in the store, 0 for none
-- CONFIRM   no: an operator sees at once whether it is lost
-- RETURNS   ok stale
-- ok is followed by the installation and the epoch.
-- INVARIANT the epoch only rises
least_epoch, seen_epoch = tonumber(least_epoch), tonumber(seen_epoch)

local fields = redis.call('HMGET', meta_key, 'id', 'epoch', 'former', 'accepted', 'stopped')
local epoch = tonumber(fields[2] or '0')
if epoch ~= seen_epoch then
  -- The reply to this very call was lost, or another operator was faster.
  if fields[4] == fields[2] and not fields[5] then return {'ok', fields[1], fields[2]} end
  return {'stale'}
end
local name, former = fields[1] or new_name, fields[3] or ''
if former_name ~= '' and former_name ~= name then
  former = former == '' and former_name or former .. ',' .. former_name
end
epoch = string.format('%d', math.max(epoch, least_epoch) + 1)
redis.call('HSET', meta_key, 'id', name, 'epoch', epoch, 'accepted', epoch, 'former', former)
redis.call('HDEL', meta_key, 'stopped')
return {'ok', name, epoch}
