-- friend_block: blocks another player; friendship and requests between the two end.
-- INCLUDES  clock
-- KEYS      1 pair
-- ARGV      1 user: who blocks
-- RETURNS   ok
-- INVARIANT while one blocks the other they are not friends
redis.call('HDEL', pair_key, 'rel', 'since')
local _, now = read_clock()
redis.call('HSETNX', pair_key, 'block:' .. user, now)
return {'ok', redis.call('HGET', pair_key, 'block:' .. user)}
