-- lib_event: one entry of a room's numbered list, published as it is stored. emit_event appends
-- "<seq>-<nonce>|<type>|<ms>|<values>" and publishes it; package events lists the values of each
-- type. The list keeps the newest 256 to 319 entries.
local function emit_event(publish, events_key, seq, nonce, now, event_type, values)
  local entry = seq .. '-' .. nonce .. '|' .. event_type .. '|' .. now .. '|' .. values
  if redis.call('RPUSH', events_key, entry) >= 320 then redis.call('LTRIM', events_key, -256, -1) end
  redis.call(publish, events_key, entry)
end
