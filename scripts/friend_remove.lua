-- friend_remove: removes a request, a friendship and the user's own block, whichever there is.
-- FLAGS     allow-oom
-- KEYS      1 pair
-- ARGV      1 user
-- RETURNS   ok
-- INVARIANT the other's block stays; a pair with nothing between them has no record
redis.call('HDEL', pair_key, 'rel', 'since', 'block:' .. user)
return {'ok'}
