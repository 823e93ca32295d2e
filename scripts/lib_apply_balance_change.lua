-- lib_apply_balance_change: changes one player's balance of one token and emits user.balance.
-- INCLUDES  clock int_to_string format_decimal hincrby_many emit_event
-- account has the keys wallet, lines and events of the player. change has token, decimals, free
-- and held (signed amounts by which the two change, '0' for none), reason and ref (any text).
-- Where free is not '0' the player's ledger line is written too. extra_event, or nil, is one more
-- event to the player: its kind and data. It returns what the player can spend now, and what is
-- held. The running totals are the caller's: see post_ledger_entry.
local function apply_balance_change(publish, nonce, account, change, extra_event)
  local delta, token, decimals = change.free, change.token, change.decimals
  local changed = delta ~= '0' or change.held ~= '0'
  local after = hincrby_many(account.wallet, {'free:' .. token, 'held:' .. token, 'line', 'seq'},
    {delta, change.held, delta ~= '0' and '1' or '0', changed and extra_event and '2' or '1'})
  local free, held, line, seq = unpack(after)
  if delta ~= '0' then
    redis.call('XADD', account.lines, line .. '-0', 'at', now_text, 'tok', token, 'delta', delta, 'after', free,
      'why', change.reason, 'ref', change.ref)
  end
  if changed then
    local balance_seq = extra_event and int_to_string(seq - 1) or seq
    emit_event(publish, account.events, 32, nonce, balance_seq, 'user.balance', '', '{"tokenId":"' .. token ..
      '","volume":' .. format_decimal(free, decimals) .. ',"amount":"' .. free ..
      '","held":' .. format_decimal(held, decimals) .. ',"heldAmount":"' .. held ..
      '","delta":' .. format_decimal(delta, decimals) .. ',"deltaAmount":"' .. delta ..
      '","reason":' .. cjson.encode(change.reason) .. ',"ref":' .. cjson.encode(change.ref) .. '}')
  end
  if extra_event then emit_event(publish, account.events, 32, nonce, seq, extra_event.kind, '', extra_event.data) end
  redis.call('PEXPIRE', account.events, 3600000)
  return free, held
end
