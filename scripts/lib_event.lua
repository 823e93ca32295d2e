-- lib_event: one entry of a room's numbered list, published as it is stored,
-- "<seq>-<nonce>|<type>|<ms>|<values>"; package events lists the values of each type.
local function format_event(seq, nonce, event_type, now, values)
  --@feed fed_seq, fed_nonce, fed_type, fed_now, fed_values = seq, nonce, event_type, now, values
  return seq .. '-' .. nonce .. '|' .. event_type .. '|' .. now .. '|' .. values
end

-- publish_event publishes an event that was appended to a list which has then the length. The list
-- keeps the newest 256 to 319 entries.
local function publish_event(publish, events_key, event, length)
  if length >= 320 then redis.call('LTRIM', events_key, -256, -1) end
  redis.call(publish, events_key, event)
  --@feed append_to_feed(publish, events_key)
end

-- emit_event appends an event and publishes it.
local function emit_event(publish, events_key, seq, nonce, now, event_type, values)
  local event = format_event(seq, nonce, event_type, now, values)
  publish_event(publish, events_key, event, redis.call('RPUSH', events_key, event))
end
