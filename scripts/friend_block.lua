-- friend_block: shuts a player out for another; friendship and requests between them end.
-- USES  clock
-- KEYS  1 pair
-- ARGV  1 me
-- GIVES ok
-- KEEPS while one blocks the other they are not friends
local pair = KEYS[1]
local me = ARGV[1]

redis.call('HDEL', pair, 'rel', 'since')
redis.call('HSETNX', pair, 'block:' .. me, whole(now_ms))
return {'ok', redis.call('HGET', pair, 'block:' .. me)}
