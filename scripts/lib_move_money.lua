-- lib_move_money: changes what a user can spend and what is held of it by signed amounts.
-- INCLUDES  apply_balance_change room_params room_wallets
local function move_money(room, id, free, held, reason)
  apply_balance_change(publish, nonce, wallets[id], {token = room.token, decimals = room.decimals, free = free,
    held = held, reason = reason, ref = room.id})
end
