-- friend_index: lists another player in the index of a player by what they are to the player, and
-- nowhere else; or changes nothing. '' takes the other out.
-- KEYS      1 friends  2 incoming requests  3 blocked
-- ARGV      1 other user  2 state: friend, outgoing, incoming, blocked or ''  3 since in ms
--           4 most friends, '' for any number  5 most incoming requests  6 most blocked, '' for any
-- RETURNS   ok forbidden
-- INVARIANT others cannot fill a player's index: only the newest of their requests are kept
local friends_key, incoming_key, blocked_key = KEYS[1], KEYS[2], KEYS[3]
local other, state, since = ARGV[1], ARGV[2], ARGV[3]
local max_friends, max_incoming, max_blocked = ARGV[4], tonumber(ARGV[5]), ARGV[6]

local is_friend = state == 'friend' or state == 'outgoing'
local function is_full(index_key, max)
  return max ~= '' and redis.call('ZCARD', index_key) >= tonumber(max) and not redis.call('ZSCORE', index_key, other)
end
if is_friend and is_full(friends_key, max_friends) then return {'forbidden'} end
if state == 'blocked' and is_full(blocked_key, max_blocked) then return {'forbidden'} end
if is_friend then
  redis.call('ZADD', friends_key, other, other)
else
  redis.call('ZREM', friends_key, other)
end
if state == 'blocked' then
  redis.call('ZADD', blocked_key, other, other)
else
  redis.call('ZREM', blocked_key, other)
end
if state == 'incoming' then
  redis.call('ZADD', incoming_key, since, other)
  redis.call('ZREMRANGEBYRANK', incoming_key, 0, -max_incoming - 1)
else
  redis.call('ZREM', incoming_key, other)
end
return {'ok'}
