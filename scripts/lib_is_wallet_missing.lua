-- lib_is_wallet_missing: reports whether the caller left out the wallet of a user who has a
-- stake.
-- INCLUDES  room_wallets
local function is_wallet_missing(room)
  for _, seat in ipairs(room.seats) do
    if seat.stake ~= '0' and not wallets[seat.user] then return true end
  end
  return false
end
