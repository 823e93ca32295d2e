-- room_leave: removes a user before the start and returns the stake; forfeits the seat after it;
-- or changes nothing.
-- INCLUDES  clock int_to_string format_time format_decimal hincrby_many emit_event
--           apply_balance_change post_ledger_entry receipt room_params room_wallets room
--           build_reply room_reply is_resend begin_change find_seat list_active_seats
--           set_seat_field remove_seat is_wallet_missing move_money post_room_entry return_stake
--           emit_room_event format_participants format_amount elect_host start_room
--           autostart_room close_room cancel_room is_balanced pay_out
-- ARGV      9 results  10 payouts  11 rake  12 version for which these were computed (what the
--           last user left over gets; '' when not known yet)
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed not_participant
-- INVARIANT pot is the sum of the stakes; seq and position are those of the last event; an index
--           names a room exactly while it is so
local results, payouts, rake, version = ARGV[9], ARGV[10], ARGV[11], ARGV[12]

local first_reply = find_receipt(receipt_key, fingerprint)
if first_reply then return first_reply end
local room = load_room(room_key, events_key)
if not room or room.game ~= game then return refuse('room_not_found') end
if is_resend(room) then return ok(room) end
local seat = find_seat(room, user)
if room.visibility == 'private' and not seat then return refuse('room_not_found') end
if room.status == 'FINISHED' or room.status == 'CANCELLED' then return refuse('room_closed') end
if not seat or seat.state == 'forfeited' then return refuse('not_participant') end
local active_left = #list_active_seats(room) - (seat.state == 'active' and 1 or 0)
local is_empty = active_left == 0
local is_won = room.status == 'STARTED' and active_left == 1 and room.entry ~= '0'
if room.status == 'STARTED' and (is_empty or is_won) and is_wallet_missing(room) then
  return build_reply('stale', room)
end
if is_won and (version ~= room.version or not is_balanced(room, payouts, rake)) then
  return build_reply('stale', room)
end

begin_change(room)
local reason = 'left'
if room.status == 'STARTED' then
  reason = 'forfeited'
  set_seat_field(room, seat, 'state', 'forfeited')
else
  return_stake(room, seat)
  remove_seat(room, user)
end
emit_room_event(room, 'room.left', '"userId":' .. user .. ',"reason":"' .. reason .. '",' .. format_participants(room))
elect_host(room)
if is_empty then
  cancel_room(room, 'empty')
elseif is_won then
  pay_out(room, results, payouts, rake)
else
  autostart_room(room)
end
save_room(room)
return ok(room)
