-- lib_refund: the end of a room without a result.
-- INCLUDES  stake
-- refund_seats gives every stake back, those of the forfeited too, and takes the room off the
-- players' lists. It returns the refunds, "<user>:<units>;…".
local function refund_seats(publish, seats, keys_of, ledger_key, nonce, now, token, decimals, pot, room_id)
  local refunds, postings = {}, {}
  for _, seat in ipairs(seats) do
    local keys, stake = keys_of[seat.user], seat.stake
    redis.call('ZREM', keys[1], room_id)
    if stake ~= '0' then
      release_stake(publish, keys[2], keys[3], nonce, now, token, decimals, stake, stake, 'refund', room_id)
      refunds[#refunds + 1] = seat.user .. ':' .. stake .. ';'
      postings[#postings + 1] = ';w' .. seat.user .. ':' .. stake
    end
  end
  if #postings > 0 then
    redis.call('RPUSH', ledger_key, now .. '|' .. nonce .. '|' .. token .. '|refund|' .. room_id .. '|e:-' .. pot ..
      table.concat(postings))
  end
  return table.concat(refunds)
end
