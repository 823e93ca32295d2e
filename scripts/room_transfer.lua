-- room_transfer: makes a seated player the host, or changes nothing.
-- INCLUDES  clock int_to_string format_time emit_event receipt room_params room build_reply
--           room_reply is_resend begin_change find_seat emit_room_event
-- ARGV      9 target
-- RETURNS   ok replay idempotency_key_reused room_not_found room_closed not_host not_participant
-- INVARIANT pot is the sum of the stakes; seq and position are those of the last event; an index
--           names a room exactly while it is so
local target = ARGV[9]

local first_reply = find_receipt(receipt_key, fingerprint)
if first_reply then return first_reply end
local room = load_room(room_key, events_key)
if not room or room.game ~= game then return refuse('room_not_found') end
if is_resend(room) then return ok(room) end
if room.visibility == 'private' and user ~= '' and not find_seat(room, user) then return refuse('room_not_found') end
if room.status == 'FINISHED' or room.status == 'CANCELLED' then return refuse('room_closed') end
if user ~= '' and user ~= room.host then return refuse('not_host') end
local seat = find_seat(room, target)
if not seat or seat.state ~= 'active' then return refuse('not_participant') end
if target == room.host then return ok(room) end

begin_change(room)
room.host, room.host_profile = target, seat.profile
emit_room_event(room, 'room.host_changed', '"userId":' .. target)
save_room(room)
return ok(room)
