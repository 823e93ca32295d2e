-- tour_attempt: counts a play of an entrant of a running score tournament, or changes nothing.
-- INCLUDES  clock
-- KEYS      1 tour  2 entrants  3 attempts
-- ARGV      1 nonce  2 user  3 most: most attempts
-- RETURNS   ok tournament_not_found not_entrant disqualified tournament_closed attempts_exhausted
-- INVARIANT a play begins before the end, and nobody begins more than there are attempts; who
--           did not check in begins none
-- After ok follows how many attempts the player has used.
local fields = redis.call('HMGET', tour_key, 'settings', 'live')
if not fields[1] then return {'tournament_not_found'} end
UNPACK(fields[1], tour_settings: ends)
UNPACK(fields[2], tour_live: status roll)
local entrant = redis.call('HGET', entrants_key, user)
local state = entrant and string.match(entrant, PATTERN(tour_entrant: state))
if state == 'disqualified' then return {'disqualified'} end
if not state or state == 'out' then return {'not_entrant'} end
if state == 'joined' and roll == '1' then return {'not_entrant'} end -- tour_settle will take the player out
local used, last_nonce = string.match(redis.call('HGET', attempts_key, user) or '0|', '^(%d+)|(.*)$')
if last_nonce == nonce then return {'ok', used} end
local now_ms = read_clock()
if status ~= 'RUNNING' or now_ms >= tonumber(ends) then return {'tournament_closed'} end
if tonumber(used) >= tonumber(most) then return {'attempts_exhausted'} end
used = string.format('%d', used + 1)
redis.call('HSET', attempts_key, user, used .. '|' .. nonce)
return {'ok', used}
