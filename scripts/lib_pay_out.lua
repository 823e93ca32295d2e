-- lib_pay_out: ends the room with a result: releases every stake, pays the payouts and the rake.
-- INCLUDES  int_to_string format_decimal room move_money post_room_entry emit_room_event
--           format_amount close_room
-- payouts must be as is_balanced wants them, and no wallet may be missing, see is_wallet_missing.
local function pay_out(room, results, payouts, rake)
  local paid, list, postings = {}, {}, {}
  for id, place, units in string.gmatch(payouts, '(%d+):(%d+):(%d+)') do
    paid[id] = units
    list[#list + 1] = '{"userId":' .. id .. ',"place":' .. (place == '0' and 'null' or place) .. ',' ..
      format_amount(room, 'payout', units) .. '}'
    if units ~= '0' then postings[#postings + 1] = ';w:' .. id .. ':' .. units end
  end
  for _, seat in ipairs(room.seats) do
    if seat.stake ~= '0' then
      local won = paid[seat.user] or '0'
      move_money(room, seat.user, won, '-' .. seat.stake, won == '0' and 'lost' or 'payout')
    end
  end
  if room.pot ~= '0' then
    if rake ~= '0' then postings[#postings + 1] = ';h:' .. rake end
    post_room_entry(room, 'payout', 'e:' .. room.id .. ':-' .. room.pot .. table.concat(postings),
      {'escrow', 'wallets', 'house'}, {'-' .. room.pot, int_to_string(room.pot - rake), rake})
  end
  local payouts_json = '[' .. table.concat(list, ',') .. ']'
  set_field(room, 'results', results)
  set_field(room, 'payouts', payouts_json)
  set_field(room, 'rake', rake)
  close_room(room, 'FINISHED')
  emit_room_event(room, 'room.finished', '"results":' .. results .. ',"payouts":' .. payouts_json ..
    ',"rake":' .. format_decimal(rake, room.decimals) .. ',"rakeAmount":"' .. rake .. '"')
end
