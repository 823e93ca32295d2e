-- webhook_commit: stores how far a webhook has got, its newest attempts and what it gave up, or
-- changes nothing. A full store takes it too: else what was delivered would be delivered again.
-- FLAGS     allow-oom
-- KEYS      1 state  2 attempts  3 parked
-- ARGV      1 nonce  2 fence: of the leader  3 round: of the state that the leader read
--           4 most_attempts: that are kept  5 most_parked: that are kept  6 attempts_count
--           7 parked_count  then the attempts, the parked entries, and pairs of a field of the
--           state and its value, '' for a field that goes
-- CONFIRM   no: what is lost is delivered again
-- RETURNS   ok stale
-- INVARIANT a leader with an older fence changes nothing, and neither does one that has not read
--           the newest round; a resend of the same call changes nothing
local stored = redis.call('HMGET', state_key, 'fence', 'round', 'nonce')
if stored[3] == nonce then return {'ok'} end
if tonumber(stored[1] or 0) > tonumber(fence) then return {'stale', 'fence'} end
if (stored[2] or '') ~= round then return {'stale'} end
local at = NEXT_ARG
for _ = 1, tonumber(attempts_count) do
  redis.call('LPUSH', attempts_key, ARGV[at])
  at = at + 1
end
if at > NEXT_ARG then redis.call('LTRIM', attempts_key, 0, most_attempts - 1) end
local parked_from = at
for _ = 1, tonumber(parked_count) do
  redis.call('LPUSH', parked_key, ARGV[at])
  at = at + 1
end
if at > parked_from then redis.call('LTRIM', parked_key, 0, most_parked - 1) end
redis.call('HSET', state_key, 'fence', fence, 'nonce', nonce)
for i = at, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', state_key, ARGV[i])
  else
    redis.call('HSET', state_key, ARGV[i], ARGV[i + 1])
  end
end
return {'ok'}
