-- external_token_use: returns when a token of an outside issuer was first used: now, when it was
-- not used before.
-- INCLUDES  clock
-- FLAGS     allow-oom
-- KEYS      1 first_use
-- ARGV      1 ttl_ms: for how long it is remembered, in ms
-- RETURNS   ok
-- INVARIANT the first use of a token does not change
local first = redis.call('GET', first_use_key)
if first then return {'ok', first} end
local _, now = read_clock()
redis.call('SET', first_use_key, now, 'PX', ttl_ms)
return {'ok', now}
