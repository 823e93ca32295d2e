-- lib_refund: the end of a room without a result.
-- refund_seats gives every stake back, those of the forfeited too. It returns the refunds, "<user>:<units>;…".
local function refund_seats(publish, seats, keys_of, ledger_key, nonce, now, token, decimals, pot, room_id)
  local refunds, postings = '', ''
  for _, seat in ipairs(seats) do
    local keys = keys_of[seat.user]
    redis.call('ZREM', keys[1], room_id)
    if seat.stake ~= '0' then
      release_stake(publish, keys, nonce, now, token, decimals, seat.stake, seat.stake, 'refund', room_id)
      refunds = refunds .. seat.user .. ':' .. seat.stake .. ';'
      postings = postings .. ';w' .. seat.user .. ':' .. seat.stake
    end
  end
  if refunds ~= '' then
    redis.call('RPUSH', ledger_key, now .. '|' .. nonce .. '|' .. token .. '|refund|' .. room_id .. '|e:-' .. pot .. postings)
  end
  return refunds
end

