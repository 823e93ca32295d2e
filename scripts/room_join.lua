-- room_join: seats a user and takes the stake, or changes nothing.
-- INCLUDES  clock int_to_string format_time format_decimal is_at_least hincrby_many emit_event
--           apply_balance_change post_ledger_entry receipt room_params room_wallets room
--           build_reply room_reply is_resend begin_change find_seat list_active_seats remove_seat
--           add_seat check_funds move_money post_room_entry take_stake emit_room_event
--           format_participants start_room autostart_room
-- ARGV      9 profile  10 is the user a friend of the creator: 1, 0, or '' when it was not looked
--           up
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed already_started
--           banned friends_only room_full insufficient_funds
-- INVARIANT pot is the sum of the stakes; seq and position are those of the last event; an index
--           names a room exactly while it is so
local profile, friend = ARGV[9], ARGV[10]

local first_reply = find_receipt(receipt_key, fingerprint)
if first_reply then return first_reply end
local room = load_room(room_key, events_key)
if not room or room.game ~= game then return refuse('room_not_found') end
if is_resend(room) then return ok(room) end
local seat = find_seat(room, user)
local for_friends = room.visibility == 'private' or room.friends_only == '1'
if for_friends and not seat and user ~= room.creator then
  if friend == '' then return build_reply('stale', room) end
  if friend == '0' and room.visibility == 'private' then return refuse('room_not_found') end
end
if room.status == 'FINISHED' or room.status == 'CANCELLED' then return refuse('room_closed') end
if seat and seat.state == 'active' then return ok(room) end
if room.status ~= 'CREATED' then return refuse('already_started') end
if room.fields['ban:' .. user] then return refuse('banned') end
if friend == '0' and for_friends and not seat then return refuse('friends_only') end
if not seat and count_taken_seats(room) >= tonumber(room.max_players) then return refuse('room_full') end
local shortage = check_funds(room, user)
if shortage then return refuse(unpack(shortage)) end

begin_change(room)
add_seat(room, user, 'active', room.entry, profile)
take_stake(room, user)
emit_room_event(room, 'room.joined', '"user":' .. profile .. ',' .. format_participants(room))
autostart_room(room)
save_room(room)
return ok(room)
