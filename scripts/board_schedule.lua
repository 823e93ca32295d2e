-- board_schedule: says when the leader looks at leaderboards next. It leaves out those that others
-- have changed since the leader took them.
-- FLAGS     allow-oom
-- KEYS      1 due
-- ARGV      1 taken: time that the leader gave them when it took them, in ms  then pairs of a board
--           and the next time in ms
-- RETURNS   ok
for i = NEXT_ARG, #ARGV, 2 do
  if redis.call('ZSCORE', due_key, ARGV[i]) == taken then redis.call('ZADD', due_key, ARGV[i + 1], ARGV[i]) end
end
return {'ok'}
