-- room_finish: ends the game with a result and pays out the pot, or changes nothing.
-- INCLUDES  clock int_to_string format_time format_decimal hincrby_many emit_event
--           apply_balance_change post_ledger_entry receipt room_params room_wallets room
--           build_reply room_reply begin_change find_seat is_wallet_missing move_money
--           post_room_entry emit_room_event format_amount close_room is_balanced pay_out
-- ARGV      9 results  10 payouts  11 rake  12 version for which these were computed
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed result_conflict
--           not_started
-- INVARIANT payouts and rake are the pot exactly; no stake stays held
local results, payouts, rake, version = ARGV[9], ARGV[10], ARGV[11], ARGV[12]

local first_reply = find_receipt(receipt_key, fingerprint)
if first_reply then return first_reply end
local room = load_room(room_key, events_key)
if not room or room.game ~= game then return refuse('room_not_found') end
if room.status == 'FINISHED' then
  if room.fields.results ~= results then return refuse('result_conflict') end
  return ok(room) -- the same result again
end
if room.status == 'CANCELLED' then return refuse('room_closed') end
if room.status ~= 'STARTED' then return refuse('not_started') end
if version ~= room.version or is_wallet_missing(room) or not is_balanced(room, payouts, rake) then
  return build_reply('stale', room)
end

begin_change(room)
pay_out(room, results, payouts, rake)
save_room(room)
return ok(room)
