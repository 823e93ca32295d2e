-- token_create: makes a token and gives it the next id, or changes nothing.
-- KEYS  1 token  2 tokens
-- ARGV  1 nonce  2 code  3 decimals  4 name  5 logo ('' for none)  6 asset name  7 policy id
-- GIVES ok token_exists
-- KEEPS an id names one code for ever, and a code one token
local token, tokens = KEYS[1], KEYS[2]
local nonce, code, decimals, name, logo, asset, policy = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]

local maker = redis.call('HGET', token, 'nonce')
if maker == nonce then return {'ok'} end
if maker then return {'token_exists'} end

local id = string.format('%.0f', redis.call('HINCRBY', tokens, 'next', 1))
redis.call('HSET', tokens, id, code)
redis.call('HSET', token, 'id', id, 'decimals', decimals, 'name', name, 'logo', logo, 'asset', asset, 'policy', policy, 'nonce', nonce)
return {'ok'}
