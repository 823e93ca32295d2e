-- board_define: stores fields of a leaderboard, which raises its version, or changes nothing. A
-- field with an empty value is removed.
-- KEYS      1 board
-- ARGV      1 nonce  2 version_read: '' for a new one  then pairs of a field and its value
-- RETURNS   ok stale board_exists
-- INVARIANT the version rises by one with every change
local stored = redis.call('HMGET', board_key, 'ver', 'nonce')
if stored[2] == nonce then return 'ok' end
if version_read == '' and stored[1] then return 'board_exists' end
if version_read ~= '' and stored[1] ~= version_read then return 'stale' end

for i = NEXT_ARG, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', board_key, ARGV[i])
  else
    redis.call('HSET', board_key, ARGV[i], ARGV[i + 1])
  end
end
redis.call('HSET', board_key, 'nonce', nonce)
redis.call('HINCRBY', board_key, 'ver', '1')
return 'ok'
