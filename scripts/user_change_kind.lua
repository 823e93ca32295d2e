-- user_change_kind: makes an account of one kind an account of another, or changes nothing.
-- FLAGS     allow-oom
-- KEYS      1 user
-- ARGV      1 from: kind that the account must have  2 to: new kind
-- RETURNS   ok stale user_not_found
-- INVARIANT of two changes at once one wins; a resend of the same call is ok
local kind = redis.call('HGET', user_key, 'kind')
if not kind then return {'user_not_found'} end
if kind == to then return {'ok'} end
if kind ~= from then return {'stale'} end
redis.call('HSET', user_key, 'kind', to)
return {'ok'}
