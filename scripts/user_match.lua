-- user_match: tells a player that the room of a match is open, or changes nothing when the player's
-- events have that already.
-- INCLUDES  clock event user_event
-- KEYS      1 progress  2 events
-- ARGV      1 publish command  2 nonce  3 values of the event
-- RETURNS   ok
local progress_key, events_key = KEYS[1], KEYS[2]
local publish, nonce, values = ARGV[1], ARGV[2], ARGV[3]

for _, event in ipairs(redis.call('LRANGE', events_key, 0, -1)) do
  if string.sub(event, -#values - 1) == '|' .. values then return 'ok' end
end
local _, now = read_clock()
emit_user_event(publish, progress_key, events_key, nonce, now, 'user.match', values)
return 'ok'
