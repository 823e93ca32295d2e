-- room_ready: records that a user is ready, or no longer ready; or changes nothing.
-- INCLUDES  clock int_to_string format_time emit_event receipt room_params room build_reply
--           room_reply is_resend begin_change find_seat list_active_seats set_seat_field
--           remove_seat emit_room_event start_room autostart_room
-- ARGV      9 ready: 1 or 0
-- RETURNS   ok replay idempotency_key_reused room_not_found room_closed already_started
--           not_participant
-- INVARIANT pot is the sum of the stakes; seq and position are those of the last event; an index
--           names a room exactly while it is so
local ready = ARGV[9]

local first_reply = find_receipt(receipt_key, fingerprint)
if first_reply then return first_reply end
local room = load_room(room_key, events_key)
if not room or room.game ~= game then return refuse('room_not_found') end
if is_resend(room) then return ok(room) end
local seat = find_seat(room, user)
if room.visibility == 'private' and not seat then return refuse('room_not_found') end
if room.status == 'FINISHED' or room.status == 'CANCELLED' then return refuse('room_closed') end
if not seat or seat.state ~= 'active' then return refuse('not_participant') end
if room.status ~= 'CREATED' then return refuse('already_started') end
if seat.ready == ready then return ok(room) end

begin_change(room)
set_seat_field(room, seat, 'ready', ready)
emit_room_event(room, 'room.ready', '"userId":' .. user .. ',"ready":' .. (ready == '1' and 'true' or 'false'))
autostart_room(room)
save_room(room)
return ok(room)
