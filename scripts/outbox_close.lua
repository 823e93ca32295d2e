-- outbox_close: takes the entry of a room off the outbox, and parks it when who waited for it
-- refused it for good; or changes nothing.
-- FLAGS     allow-oom
-- KEYS      1 outbox  2 parked
-- ARGV      1 room id  2 entry  3 parked entry: '' for one that was applied  4 most parked: how many
--           entries are kept
-- RETURNS   ok
-- INVARIANT an entry is in the outbox until it was applied or refused; the parked ones are bounded
local outbox_key, parked_key = KEYS[1], KEYS[2]
local room_id, entry, parked_entry, most_parked = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if redis.call('HGET', outbox_key, room_id) ~= entry then return 'ok' end
if parked_entry ~= '' and redis.call('HLEN', parked_key) < tonumber(most_parked) then
  redis.call('HSET', parked_key, room_id, parked_entry)
end
redis.call('HDEL', outbox_key, room_id)
return 'ok'
