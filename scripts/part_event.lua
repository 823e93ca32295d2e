-- event: one entry in a stream and the same on the channel of the same name. Needs clock.
-- gives emit(verb, stream, keep, nonce, seq, kind, subject, data)
--
-- seq is the event's number as a string, nonce a random decimal number of the call: together the
-- position "<seq>-<nonce>", which is the stream entry's id, so that a history that forked in a
-- failover does not look like its sibling. subject is a JSON fragment such as '"roomId":"…",' (or ''),
-- data a JSON object. verb is PUBLISH, or SPUBLISH on Redis Cluster. keep bounds the stream.
-- The entry has the fields t (kind) and e (the event), the message is "<position>|<kind>|<event>".
local function emit(verb, stream, keep, nonce, seq, kind, subject, data)
  local position = seq .. '-' .. nonce
  local event = '{"type":"' .. kind .. '",' .. subject .. '"seq":' .. seq .. ',"position":"' .. position ..
    '","at":"' .. iso(now_ms) .. '","data":' .. data .. '}'
  redis.call('XADD', stream, 'MAXLEN', '~', keep, position, 't', kind, 'e', event)
  redis.call(verb, stream, position .. '|' .. kind .. '|' .. event)
end
