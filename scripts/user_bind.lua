-- user_bind: gives an identity to a player, or changes nothing; it answers whose the identity is.
-- KEYS  1 identity
-- ARGV  1 user
-- GIVES ok
-- KEEPS an identity belongs to one player, for ever
local identity = KEYS[1]
local user = ARGV[1]

local holder = redis.call('GET', identity)
if holder then return {'ok', holder} end
redis.call('SET', identity, user)
return {'ok', user}
