-- lib_emit_event: appends one event to a stream and publishes it on the channel of the same name.
-- INCLUDES  clock format_time
-- verb is PUBLISH, or SPUBLISH on Redis Cluster. keep bounds the stream. nonce is a random
-- decimal number of the call, seq the event's number as a text: together the position
-- "<seq>-<nonce>", which is the stream entry's id, so that a history that forked in a failover
-- does not look like its sibling. kind is the event's type, subject a JSON fragment such as
-- '"roomId":"…",' (or ''), data a JSON object. The entry has the fields t (kind) and e (the event);
-- the message is "<position>|<kind>|<event>".
local function emit_event(verb, stream, keep, nonce, seq, kind, subject, data)
  local position = seq .. '-' .. nonce
  local event = '{"type":"' .. kind .. '",' .. subject .. '"seq":' .. seq .. ',"position":"' .. position ..
    '","at":"' .. format_time(now_ms) .. '","data":' .. data .. '}'
  redis.call('XADD', stream, 'MAXLEN', '~', keep, position, 't', kind, 'e', event)
  redis.call(verb, stream, position .. '|' .. kind .. '|' .. event)
end
