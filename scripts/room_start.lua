-- room_start: starts the game and locks the stakes, or changes nothing.
-- INCLUDES  clock int_to_string format_time emit_event receipt room_params room build_reply
--           room_reply is_resend begin_change find_seat list_active_seats remove_seat
--           emit_room_event start_room
-- RETURNS   ok replay idempotency_key_reused room_not_found room_closed not_host already_started
--           not_enough_players
-- INVARIANT pot is the sum of the stakes; seq and position are those of the last event; an index
--           names a room exactly while it is so

local first_reply = find_receipt(receipt_key, fingerprint)
if first_reply then return first_reply end
local room = load_room(room_key, events_key)
if not room or room.game ~= game then return refuse('room_not_found') end
if is_resend(room) then return ok(room) end
if room.visibility == 'private' and user ~= '' and not find_seat(room, user) then return refuse('room_not_found') end
if room.status == 'FINISHED' or room.status == 'CANCELLED' then return refuse('room_closed') end
if user ~= '' and user ~= room.host then return refuse('not_host') end
if room.status ~= 'CREATED' then return refuse('already_started') end
local players = #list_active_seats(room)
if players < tonumber(room.min_players) then
  return refuse('not_enough_players', int_to_string(players), room.min_players)
end

begin_change(room)
start_room(room, user ~= '' and 'host' or 'server')
save_room(room)
return ok(room)
