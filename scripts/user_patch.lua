-- user_patch: changes fields of a player, or changes nothing.
-- KEYS  1 user
-- ARGV  field and value, in turns
-- GIVES ok user_not_found
local user = KEYS[1]

if redis.call('EXISTS', user) == 0 then return {'user_not_found'} end
redis.call('HSET', user, unpack(ARGV))
return {'ok'}
