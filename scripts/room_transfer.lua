-- room_transfer: makes a seated player the host, or changes nothing. The host of a match whose seat
-- is still reserved may not call it.
-- INCLUDES  clock receipt call event marks save_change
-- KEYS      1 room  2 events
-- ARGV      4 publish  5 user: '' for the game's server  6 caller_game: game  7 target
-- RETURNS   ok replay idempotency_key_reused room_not_found room_closed not_host not_participant
-- INVARIANT live has the position of the last event
local fields = redis.call('HMGET', room_key, 'settings', 'live', 's' .. user, 's' .. target, 'marks')
local settings, own_seat, target_seat, marks = fields[1], fields[3], fields[4], fields[5]
if not settings then return refuse('room_not_found', nonce) end
UNPACK(settings, room_settings: game visibility)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game then return refuse('room_not_found', nonce) end
if is_resend(marks, nonce) then return 'ok' end
if visibility == 'private' and user ~= '' and not own_seat then return refuse('room_not_found', nonce) end
if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end
if user ~= '' and user ~= host then return refuse('not_host', nonce) end
-- An active seat begins with "a".
if user ~= '' and (not own_seat or string.byte(own_seat) ~= 97) then return refuse('not_participant', nonce) end
if not target_seat or string.byte(target_seat) ~= 97 then return refuse('not_participant', nonce) end
if target == host then return refuse('ok', nonce) end

local _, now = read_clock()
local changed = now
version, seq, host = string.format('%d', version + 1), string.format('%d', seq + 1), target
emit_event(publish, events_key, seq, nonce, now, 'room.host_changed', version .. '|' .. target)
save_change(room_key, receipt_key, fingerprint, ttl_ms, nonce, marks, 'live', PACK(room_live))
return 'ok'
