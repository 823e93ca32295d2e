-- lib_cancel_room: ends the room and returns every stake, those of forfeited seats too.
-- INCLUDES  room move_money post_room_entry emit_room_event format_amount close_room
-- No wallet may be missing, see is_wallet_missing.
local function cancel_room(room, reason)
  local refunds, postings = {}, {}
  for _, seat in ipairs(room.seats) do
    local stake = seat.stake
    if stake ~= '0' then
      move_money(room, seat.user, stake, '-' .. stake, 'refund')
      refunds[#refunds + 1] = '{"userId":' .. seat.user .. ',' .. format_amount(room, 'refund', stake) .. '}'
      postings[#postings + 1] = ';w:' .. seat.user .. ':' .. stake
    end
  end
  if #postings > 0 then
    post_room_entry(room, 'refund', 'e:' .. room.id .. ':-' .. room.pot .. table.concat(postings),
      {'escrow', 'wallets'}, {'-' .. room.pot, room.pot})
  end
  local refunds_json = '[' .. table.concat(refunds, ',') .. ']'
  set_field(room, 'reason', reason)
  set_field(room, 'refunds', refunds_json)
  close_room(room, 'CANCELLED')
  emit_room_event(room, 'room.cancelled', '"reason":"' .. reason .. '","refunds":' .. refunds_json)
end
