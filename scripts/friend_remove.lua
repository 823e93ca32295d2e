-- friend_remove: takes back a request, a friendship and one's own block, whichever there is.
-- KEYS  1 pair
-- ARGV  1 me
-- GIVES ok
-- KEEPS the other's block stays; a pair with nothing between them has no record
local pair = KEYS[1]
local me = ARGV[1]

redis.call('HDEL', pair, 'rel', 'since', 'block:' .. me)
return {'ok'}
