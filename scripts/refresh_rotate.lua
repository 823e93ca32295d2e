-- refresh_rotate: replaces a family's current token by the next one; a token that is not the
-- current one revokes the family.
-- INCLUDES  clock int_to_string
-- KEYS      1 family
-- ARGV      1 digest of the token  2 digest of the next token  3 nonce  4 longest idle time in ms
-- RETURNS   ok unauthenticated refresh_reused
-- INVARIANT a token is exchanged once; a resend of the same call is ok, a second call with the
--           same token is not
local family_key = KEYS[1]
local digest, next_digest, nonce, idle_ms = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local now_ms, now = read_clock()
local family = redis.call('HMGET', family_key, 'current', 'game', 'until', 'nonce', 'reused')
local current, game, ends_ms, last_nonce, reused = family[1], family[2], family[3], family[4], family[5]
if not game then return {'unauthenticated'} end
if reused then return {'refresh_reused'} end
if last_nonce == nonce then return {'ok', game} end
if current ~= digest then
  -- The record stays for its time, so that every holder of a token of the family learns why.
  redis.call('HSET', family_key, 'reused', now)
  return {'refresh_reused'}
end
redis.call('HSET', family_key, 'current', next_digest, 'nonce', nonce)
redis.call('PEXPIRE', family_key, int_to_string(math.max(1, math.min(idle_ms, tonumber(ends_ms) - now_ms))))
return {'ok', game}
