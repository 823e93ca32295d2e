-- lib_balance: one token of a player's wallet, and the ledger line and event of a change.
-- read_balance returns what a player can spend and what is held, in minor units, the number of the
-- player's last event, and '|L' when the player has set limits, else ''. A token that the player
-- never had gets the flag from the wallet.
local function read_balance(wallet_key, token)
  local fields = redis.call('HMGET', wallet_key, token, ':seq')
  local balance = fields[1]
  if not balance then balance = redis.call('HEXISTS', wallet_key, ':excluded') == 1 and '0|0|L' or '0|0' end
  local free, held, limited = string.match(balance, '^(%d+)|(%d+)(.*)$')
  return free, held, fields[2] or '0', limited
end

-- write_balance stores a balance, appends the player's ledger line, which is the event as well, and
-- publishes it. seq is the number of this event as text, kind its type, change
-- "<decimals>|<delta>|<free>|<held>|<reason>|<ref>"; for user.asset
-- "|<asset>|<quantity>|<owned>|<purchase>" follows, and the line stands for two events, seq - 1 and
-- seq. limited is that of read_balance.
local function write_balance(publish, wallet_key, lines_key, nonce, now, token, free, held, limited, seq, kind,
    change)
  local entry = seq .. '-' .. nonce .. '|' .. kind .. '|' .. now .. '|' .. token .. '|' .. change
  redis.call('RPUSH', lines_key, entry) -- first: it fails, before anything was moved, when SET spoiled the list
  redis.call('HSET', wallet_key, token, free .. '|' .. held .. limited, ':seq', seq)
  redis.call(publish, lines_key, entry)
end
