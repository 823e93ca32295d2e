-- room_cancel: ends the room without a result and returns every stake, or changes nothing.
-- INCLUDES  clock int_to_string format_time format_decimal hincrby_many emit_event
--           apply_balance_change post_ledger_entry receipt room_params room_wallets room
--           build_reply room_reply is_resend begin_change find_seat is_wallet_missing move_money
--           post_room_entry emit_room_event format_amount close_room cancel_room
-- ARGV      9 reason: host server operator
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed not_host
--           already_started
-- INVARIANT every stake is returned in full; no stake stays held
local reason = ARGV[9]

local first_reply = find_receipt(receipt_key, fingerprint)
if first_reply then return first_reply end
local room = load_room(room_key, events_key)
if not room or room.game ~= game then return refuse('room_not_found') end
if is_resend(room) then return ok(room) end
if room.visibility == 'private' and user ~= '' and not find_seat(room, user) then return refuse('room_not_found') end
if room.status == 'FINISHED' or room.status == 'CANCELLED' then return refuse('room_closed') end
if user ~= '' and user ~= room.host then return refuse('not_host') end
if user ~= '' and room.status ~= 'CREATED' then return refuse('already_started') end
if is_wallet_missing(room) then return build_reply('stale', room) end

begin_change(room)
cancel_room(room, reason)
save_room(room)
return ok(room)
