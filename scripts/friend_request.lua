-- friend_request: requests a friendship, or accepts when the other has requested it; or changes
-- nothing.
-- INCLUDES  clock
-- KEYS      1 pair
-- ARGV      1 user  2 other: other user
-- RETURNS   ok forbidden
-- INVARIANT a blocked user cannot find out: the request is stored, and only its sender sees it
local values = redis.call('HMGET', pair_key, 'rel', 'since', 'block:' .. user)
local relation, since, has_blocked = values[1], values[2], values[3]
if has_blocked then return {'forbidden'} end
if relation == 'friends' or relation == user then return {'ok', relation, since} end
-- A request of the other means that the other does not block: a block ends every request.
relation = relation == other and 'friends' or user
local _, now = read_clock()
redis.call('HSET', pair_key, 'rel', relation, 'since', now)
return {'ok', relation, now}
