-- user_patch: changes fields of a player, or changes nothing.
-- KEYS      1 user
-- ARGV      then pairs of a field and its text
-- RETURNS   ok user_not_found
if redis.call('EXISTS', user_key) == 0 then return {'user_not_found'} end
redis.call('HSET', user_key, unpack(ARGV))
return {'ok'}
