-- friend_request: asks another player to be friends, or accepts when the other has asked; or changes nothing.
-- USES  clock
-- KEYS  1 pair
-- ARGV  1 me  2 other
-- GIVES ok forbidden
-- KEEPS one who is blocked cannot tell: the request stands, seen by its sender alone
local pair = KEYS[1]
local me, other = ARGV[1], ARGV[2]

local now = redis.call('HMGET', pair, 'rel', 'since', 'block:' .. me)
local rel, since, blocked = now[1], now[2], now[3]
if blocked then return {'forbidden'} end
if rel == 'friends' or rel == me then return {'ok', rel, since} end
-- What the other asked was asked by one who does not block: a block ends every request.
rel = rel == other and 'friends' or me
since = whole(now_ms)
redis.call('HSET', pair, 'rel', rel, 'since', since)
return {'ok', rel, since}
