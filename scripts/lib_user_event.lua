-- lib_user_event: an event of a player that is not about money.
-- INCLUDES  event
-- emit_user_event numbers and publishes an event in the list of a player's newest 32 of an hour.
local function emit_user_event(publish, progress_key, events_key, nonce, now, event_type, values)
  local seq = string.format('%d', redis.call('HINCRBY', progress_key, 'seq', 1))
  emit_event(publish, events_key, seq, nonce, now, event_type, values)
  redis.call('LTRIM', events_key, -32, -1)
  redis.call('PEXPIRE', events_key, 3600000)
end
