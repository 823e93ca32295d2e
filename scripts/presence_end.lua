-- presence_end: lets a lease that was claimed change nothing any more on one shard.
-- FLAGS     allow-oom
-- KEYS      1 lease
-- ARGV      1 ended_ms: for how long that is remembered
-- CONFIRM   no: a lease ends by itself
-- RETURNS   ok
-- The ids of the rooms follow in which the lease has players.
if redis.call('HSETNX', lease_key, 'ended', '1') == 1 then redis.call('PEXPIRE', lease_key, ended_ms) end
local reply = {'ok'}
for _, field in ipairs(redis.call('HKEYS', lease_key)) do
  if field ~= 'ended' and field ~= 'call' then reply[#reply + 1] = field end
end
return reply
