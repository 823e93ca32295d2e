-- user_promote: makes an account of one kind an account of another, or changes nothing.
-- KEYS  1 user
-- ARGV  1 kind it had  2 kind it gets
-- GIVES ok stale user_not_found
-- KEEPS of two that promote at once one wins; a resend of the same call is ok
local user = KEYS[1]
local from, to = ARGV[1], ARGV[2]

local kind = redis.call('HGET', user, 'kind')
if not kind then return {'user_not_found'} end
if kind == to then return {'ok'} end
if kind ~= from then return {'stale'} end
redis.call('HSET', user, 'kind', to)
return {'ok'}
