-- webhook_rewind: puts the positions of a webhook elsewhere, so that its leader reads them anew.
-- KEYS      1 state
-- ARGV      1 round: a new one  then pairs of a field of the state and its value
-- RETURNS   ok
-- INVARIANT a leader that has read the state before stores nothing any more
redis.call('HSET', state_key, 'round', round)
for i = NEXT_ARG, #ARGV, 2 do
  redis.call('HSET', state_key, ARGV[i], ARGV[i + 1])
end
return 'ok'
