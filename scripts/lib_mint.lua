-- lib_mint: brings units of a token into a game's economy.
-- INCLUDES  clock amounts balance
-- mint adds units to what a player can spend and returns that and what is held; or it changes
-- nothing and returns nil, when the player would have more than 2^53 - 1 units, held ones included,
-- or more than 4e18 would exist, so that no sum leaves Redis' integers.
local function mint(publish, wallet_key, lines_key, totals_key, ledger_key, nonce, user, token, decimals, units,
    reason, ref)
  local free, held, seq, limited = read_balance(wallet_key, token)
  local total = 'minted:' .. token
  local minted = add_amounts(redis.call('HGET', totals_key, total) or '0', units)
  free = add_amounts(free, units)
  if not has_at_least('9007199254740991', held == '0' and free or add_amounts(free, held)) or
      not has_at_least('4000000000000000000', minted) then
    return nil
  end
  local _, now = read_clock()
  local cause = '|' .. reason .. '|' .. ref
  redis.call('HSET', totals_key, total, minted)
  redis.call('RPUSH', ledger_key,
    now .. '|' .. nonce .. '|' .. token .. cause .. '|m:-' .. units .. ';w' .. user .. ':' .. units)
  write_balance(publish, wallet_key, lines_key, nonce, now, token, free, held, limited, string.format('%d', seq + 1),
    'user.balance', decimals .. '|' .. units .. '|' .. free .. '|' .. held .. cause)
  return free, held
end
