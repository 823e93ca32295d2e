-- outbox_close: takes the entry of a room off the outbox, and parks it when who waited for it
-- refused it for good; or changes nothing.
-- FLAGS     allow-oom
-- KEYS      1 outbox  2 parked
-- ARGV      1 room_id  2 entry  3 parked_entry: '' for one that was applied  4 most_parked: how
--           many entries are kept
-- RETURNS   ok
-- INVARIANT an entry is in the outbox until it was applied or refused; the parked ones are bounded
if redis.call('HGET', outbox_key, room_id) ~= entry then return 'ok' end
if parked_entry ~= '' and redis.call('HLEN', parked_key) < tonumber(most_parked) then
  redis.call('HSET', parked_key, room_id, parked_entry)
end
redis.call('HDEL', outbox_key, room_id)
return 'ok'
