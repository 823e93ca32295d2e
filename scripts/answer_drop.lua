-- answer_drop: forgets a run that has nothing to be kept, unless it is another's or has its answer: then it changes nothing.
-- KEYS  1 answer
-- ARGV  1 owner
-- GIVES ok stale
local record = KEYS[1]
local owner = ARGV[1]

local kept = redis.call('HMGET', record, 'owner', 'answer')
if kept[1] and (kept[1] ~= owner or kept[2]) then return {'stale'} end
redis.call('DEL', record)
return {'ok'}
