-- refresh_rotate: replaces a family's current token by the next; a token that is not the current one revokes the family.
-- USES  clock
-- KEYS  1 family
-- ARGV  1 digest shown  2 digest of the next token  3 nonce  4 idle ms
-- GIVES ok unauthenticated refresh_reused
-- KEEPS a token is exchanged once; a resend of the same call is ok, a second call with the same token is not
local family = KEYS[1]
local shown, following, nonce, idle = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local now = redis.call('HMGET', family, 'current', 'game', 'until', 'nonce', 'reused')
local current, game, ends, last, reused = now[1], now[2], now[3], now[4], now[5]
if not game then return {'unauthenticated'} end
if reused then return {'refresh_reused'} end
if last == nonce then return {'ok', game} end
if current ~= shown then
  -- The record stays for its time, so that every holder of a token of the family learns why.
  redis.call('HSET', family, 'reused', whole(now_ms))
  return {'refresh_reused'}
end
redis.call('HSET', family, 'current', following, 'nonce', nonce)
redis.call('PEXPIRE', family, whole(math.max(1, math.min(idle, tonumber(ends) - now_ms))))
return {'ok', game}
