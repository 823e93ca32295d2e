-- webhook_unpark: puts the events that a webhook gave up, oldest first, behind those that it sends
-- again; it removes the list of those when all of them are done.
-- KEYS      1 state  2 parked  3 again
-- ARGV      1 round: a new one
-- RETURNS   ok
-- INVARIANT an event is in one of the lists; a leader that has read the state before stores nothing
--           any more
local done = string.match(redis.call('HGET', state_key, 'pos:again') or '', '^%d+') or '0'
if tonumber(done) >= redis.call('LLEN', again_key) then
  redis.call('DEL', again_key)
  redis.call('HDEL', state_key, 'pos:again')
end
local parked = redis.call('LRANGE', parked_key, 0, -1)
for i = #parked, 1, -1 do redis.call('RPUSH', again_key, parked[i]) end
redis.call('DEL', parked_key)
redis.call('HSET', state_key, 'round', round)
return 'ok'
