-- refresh_rotate: replaces a family's current token by the next one; a token that is neither the
-- current one nor the one before it, shown again soon, revokes the family.
-- INCLUDES  clock int_to_string
-- FLAGS     allow-oom
-- KEYS      1 family  2 user  3 families: of the user
-- ARGV      1 digest: of the token  2 next_digest: digest of the next token  3 idle_ms: longest
--           idle time in ms  4 grace_ms: how long the token before the current one may be shown
--           again, in ms  5 name: of the family
-- RETURNS   ok unauthenticated refresh_reused
-- INVARIANT a token has one successor; a resend is ok while the successor was not used; a family
--           ends with its user, and when the user's sessions were ended after it began
idle_ms, grace_ms = tonumber(idle_ms), tonumber(grace_ms)

local now_ms, now = read_clock()
local family = redis.call('HMGET', family_key, 'current', 'game', 'until', 'start', 'by', 'prev', 'rotated', 'reused')
local current, game, ends_ms, start, server_key = family[1], family[2], family[3], family[4], family[5]
local previous, rotated_ms, reused = family[6], family[7], family[8]
local user = redis.call('HMGET', user_key, 'game', 'ended')
local user_exists, ended_ms = user[1], user[2]
if not game or not user_exists then return {'unauthenticated'} end
if ended_ms and tonumber(start) <= tonumber(ended_ms) then return {'unauthenticated'} end
if reused then return {'refresh_reused'} end
if previous == digest and now_ms - tonumber(rotated_ms) <= grace_ms then
  return {'ok', game, start, server_key}
end
if current ~= digest then
  -- The record stays for its time, so that every holder of a token of the family learns why.
  redis.call('HSET', family_key, 'reused', now)
  return {'refresh_reused'}
end
redis.call('HSET', family_key, 'current', next_digest, 'prev', digest, 'rotated', now)
local ttl_ms = math.max(1, math.min(idle_ms, tonumber(ends_ms) - now_ms))
redis.call('PEXPIRE', family_key, int_to_string(ttl_ms))
redis.call('ZADD', families_key, int_to_string(now_ms + ttl_ms), name)
return {'ok', game, start, server_key}
