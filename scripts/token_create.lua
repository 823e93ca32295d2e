-- token_create: creates a token and gives it the next id, or changes nothing.
-- KEYS      1 token  2 tokens
-- ARGV      1 nonce  2 code  3 decimals  4 name  5 logo: '' for none  6 asset: asset name
--           7 policy: policy id  8 games
-- RETURNS   ok token_exists
-- INVARIANT an id always names the same code, and a code one token
local creator_nonce = redis.call('HGET', token_key, 'nonce')
if creator_nonce == nonce then return 'ok' end
if creator_nonce then return {'token_exists'} end

local id = string.format('%d', redis.call('HINCRBY', tokens_key, 'next', 1))
redis.call('HSET', tokens_key, id, code)
redis.call('HSET', token_key, 'id', id, 'decimals', decimals, 'name', name, 'logo', logo, 'asset', asset,
  'policy', policy, 'games', games, 'nonce', nonce)
return 'ok'
