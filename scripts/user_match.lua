-- user_match: tells a player that the room of a match is open, or changes nothing when the player's
-- events have that already.
-- INCLUDES  clock event user_event
-- KEYS      1 progress  2 events
-- ARGV      1 publish  2 nonce  3 event_values
-- RETURNS   ok
for _, event in ipairs(redis.call('LRANGE', events_key, 0, -1)) do
  if string.sub(event, -#event_values - 1) == '|' .. event_values then return 'ok' end
end
local _, now = read_clock()
emit_user_event(publish, progress_key, events_key, nonce, now, 'user.match', event_values)
return 'ok'
