-- game_claim_audience: gives an outside issuer's audience to a game, or changes nothing and
-- returns the game that has it.
-- KEYS      1 issuers
-- ARGV      1 field  2 game  3 former: former holder that may be replaced, or 0
-- RETURNS   ok stale
-- INVARIANT a pair of issuer and audience belongs to one game
local holder = redis.call('HGET', issuers_key, field)
if holder and holder ~= game and holder ~= former then return {'stale', holder} end
redis.call('HSET', issuers_key, field, game)
return {'ok'}
