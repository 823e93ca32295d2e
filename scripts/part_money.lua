-- money: exact amounts and the double entry. Needs clock and event.
-- gives covers(balance, units), plus(a, b), decimal(units, decimals), negated(units), mintable(...), move(...), tally(...), ledger(...)
--
-- Amounts are decimal strings of minor units. Lua's numbers are exact to 2^53 - 1, balances may pass
-- it by winnings: so balances are changed by HINCRBY, read back by HGET and compared as text.

-- covers tells whether a stored balance (or false) is at least an amount of units >= 0.
local function covers(balance, units)
  if units == '0' then return true end
  if not balance or string.byte(balance, 1) == 45 then return false end
  if #balance ~= #units then return #balance > #units end
  return balance >= units
end

-- plus adds two amounts >= 0 exactly, in two limbs of which the lower has nine digits.
local function plus(a, b)
  local low = tonumber(string.sub(a, -9)) + tonumber(string.sub(b, -9))
  local high = (tonumber(string.sub(a, 1, -10)) or 0) + (tonumber(string.sub(b, 1, -10)) or 0)
  if low >= 1000000000 then low = low - 1000000000; high = high + 1 end
  if high == 0 then return whole(low) end
  return whole(high) .. string.format('%09.0f', low)
end

-- decimal prints minor units as a JSON number without rounding: decimal('2500000', 6) is 2.5.
local function decimal(units, decimals)
  local sign = ''
  if string.byte(units, 1) == 45 then sign = '-'; units = string.sub(units, 2) end
  local d = tonumber(decimals)
  if d == 0 then return sign .. units end
  if #units <= d then units = string.rep('0', d + 1 - #units) .. units end
  local head, tail = string.sub(units, 1, #units - d), string.sub(units, #units - d + 1)
  tail = string.gsub(tail, '0+$', '')
  if tail == '' then return sign .. head end
  return sign .. head .. '.' .. tail
end

-- negated flips the sign of a decimal string.
local function negated(units)
  if units == '0' then return units end
  if string.byte(units, 1) == 45 then return string.sub(units, 2) end
  return '-' .. units
end

-- mintable tells whether units may come into a wallet from outside: the player then has at most 2^53 - 1, held ones included, and
-- of the token exist at most 4e18, so that no sum leaves Redis' integers.
local function mintable(wallet, totals, token, units)
  local has = redis.call('HMGET', wallet, 'free:' .. token, 'held:' .. token)
  local minted = redis.call('HGET', totals, 'minted:' .. token) or '0'
  return covers('9007199254740991', plus(plus(has[1] or '0', has[2] or '0'), units)) and covers('4000000000000000000', plus(minted, units))
end

-- move changes what a player can spend by delta and what is held by held (signed strings, '0' for none),
-- writes the player's ledger line (where delta is not 0) and tells the player with user.balance.
-- why and ref may be any text. It answers the new balance and the new held amount. The running totals are the caller's: tally().
local function move(verb, nonce, wallet, lines, events, token, decimals, delta, held, why, ref)
  if delta ~= '0' then redis.call('HINCRBY', wallet, 'free:' .. token, delta) end
  if held ~= '0' then redis.call('HINCRBY', wallet, 'held:' .. token, held) end
  local now = redis.call('HMGET', wallet, 'free:' .. token, 'held:' .. token)
  local free, kept = now[1] or '0', now[2] or '0'
  if delta ~= '0' then
    local line = whole(redis.call('HINCRBY', wallet, 'line', 1))
    redis.call('XADD', lines, line .. '-0', 'at', whole(now_ms), 'tok', token, 'delta', delta, 'after', free, 'why', why, 'ref', ref)
  end
  local seq = whole(redis.call('HINCRBY', wallet, 'seq', 1))
  emit(verb, events, 32, nonce, seq, 'user.balance', '', '{"tokenId":"' .. token ..
    '","volume":' .. decimal(free, decimals) .. ',"amount":"' .. free ..
    '","held":' .. decimal(kept, decimals) .. ',"heldAmount":"' .. kept ..
    '","delta":' .. decimal(delta, decimals) .. ',"deltaAmount":"' .. delta ..
    '","reason":' .. cjson.encode(why) .. ',"ref":' .. cjson.encode(ref) .. '}')
  redis.call('PEXPIRE', events, 3600000)
  return free, kept
end

-- tally adds a signed string to a running total: minted, wallets, escrow or house.
local function tally(totals, account, token, delta)
  if delta ~= '0' then redis.call('HINCRBY', totals, account .. ':' .. token, delta) end
end

-- ledger appends the double entry and answers its number. Postings look like 'w:7:-250;e:<room>:250' and sum to zero.
local function ledger(totals, stream, token, why, ref, postings)
  local seq = whole(redis.call('HINCRBY', totals, 'seq', 1))
  redis.call('XADD', stream, seq .. '-0', 'at', whole(now_ms), 'tok', token, 'why', why, 'ref', ref, 'post', postings)
  return seq
end
