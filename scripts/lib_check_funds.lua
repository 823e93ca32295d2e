-- lib_check_funds: returns nil when a user can pay the entry, else the arguments of refuse.
-- INCLUDES  is_at_least room_wallets
local function check_funds(room, id)
  if room.entry == '0' then return nil end
  local free = redis.call('HGET', wallets[id].wallet, 'free:' .. room.token)
  if is_at_least(free, room.entry) then return nil end
  return {'insufficient_funds', free or '0', room.entry, room.token, room.decimals}
end
