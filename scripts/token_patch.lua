-- token_patch: changes the description of a token, or changes nothing.
-- KEYS      1 token
-- ARGV      then pairs of a field (name logo asset policy games) and its text
-- RETURNS   ok token_not_found
-- INVARIANT id and decimals never change
if redis.call('EXISTS', token_key) == 0 then return {'token_not_found'} end
for i = NEXT_ARG, #ARGV, 2 do redis.call('HSET', token_key, ARGV[i], ARGV[i + 1]) end
return 'ok'
