-- user_unlink_identity: takes an identity from a player who has it, or changes nothing.
-- FLAGS     allow-oom
-- KEYS      1 identity
-- ARGV      1 user
-- RETURNS   ok
-- INVARIANT an identity of another player stays
local identity_key = KEYS[1]
local user = ARGV[1]

if redis.call('GET', identity_key) == user then redis.call('DEL', identity_key) end
return {'ok'}
