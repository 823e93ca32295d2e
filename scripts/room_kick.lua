-- room_kick: removes a user before the start, returns the stake and may ban the user; or changes
-- nothing.
-- INCLUDES  clock int_to_string format_time format_decimal hincrby_many emit_event
--           apply_balance_change post_ledger_entry receipt room_params room_wallets room
--           build_reply room_reply is_resend begin_change find_seat list_active_seats remove_seat
--           move_money post_room_entry return_stake emit_room_event format_participants
--           format_amount elect_host start_room autostart_room close_room cancel_room
-- ARGV      9 target  10 ban: 1 or 0
-- RETURNS   ok replay idempotency_key_reused room_not_found room_closed not_host already_started
--           not_participant
-- INVARIANT pot is the sum of the stakes; seq and position are those of the last event; an index
--           names a room exactly while it is so
local target, ban = ARGV[9], ARGV[10]

local first_reply = find_receipt(receipt_key, fingerprint)
if first_reply then return first_reply end
local room = load_room(room_key, events_key)
if not room or room.game ~= game then return refuse('room_not_found') end
if is_resend(room) then return ok(room) end
if room.visibility == 'private' and user ~= '' and not find_seat(room, user) then return refuse('room_not_found') end
if room.status == 'FINISHED' or room.status == 'CANCELLED' then return refuse('room_closed') end
if user ~= '' and user ~= room.host then return refuse('not_host') end
if room.status ~= 'CREATED' then return refuse('already_started') end
local seat = find_seat(room, target)
if not seat then return refuse('not_participant') end

begin_change(room)
if ban == '1' then set_field(room, 'ban:' .. target, '1') end
return_stake(room, seat)
remove_seat(room, target)
emit_room_event(room, 'room.left', '"userId":' .. target ..
  ',"reason":"' .. (ban == '1' and 'banned' or 'kicked') .. '",' .. format_participants(room))
elect_host(room)
if #list_active_seats(room) == 0 then cancel_room(room, 'empty') else autostart_room(room) end
save_room(room)
return ok(room)
