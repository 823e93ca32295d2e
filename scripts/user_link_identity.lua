-- user_link_identity: links an identity to a player, or changes nothing; returns the player who
-- has it.
-- KEYS      1 identity
-- ARGV      1 user
-- RETURNS   ok
-- INVARIANT an identity always belongs to the same player
local holder = redis.call('GET', identity_key)
if holder then return {'ok', holder} end
redis.call('SET', identity_key, user)
return {'ok', user}
