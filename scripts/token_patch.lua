-- token_patch: changes what is said of a token, or changes nothing.
-- KEYS  1 token
-- ARGV  pairs of a field (name logo asset policy) and its text
-- GIVES ok token_not_found
-- KEEPS id and decimals never change
local token = KEYS[1]

if redis.call('EXISTS', token) == 0 then return {'token_not_found'} end
for i = 1, #ARGV, 2 do redis.call('HSET', token, ARGV[i], ARGV[i + 1]) end
return {'ok'}
