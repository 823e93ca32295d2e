-- money: exact amounts and the double entry. Needs clock and event.
-- gives covers(balance, units), plus(a, b), decimal(units, decimals), negated(units), mintable(...), raise(...), move(...), book(...)
--
-- Amounts are decimal strings of minor units, which Lua adds as numbers where they stand in a sum. Lua's numbers are exact to 2^53 - 1, balances may pass
-- it by winnings: so what has more than 15 digits is added by Redis, and balances are compared as text.

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
  if units == '0' or decimals == '0' then return units end
  local d, sign = decimals + 0, ''
  if #units <= d + 1 then -- 5 is 0.05, and so is -5 but for its sign
    if string.byte(units) == 45 then sign = '-'; units = string.sub(units, 2) end
    units = string.rep('0', d + 1 - #units) .. units
  end
  local tail = string.sub(units, -d)
  if string.byte(tail, -1) == 48 then tail = string.match(tail, '^(.-)0*$') end
  if tail == '' then return sign .. string.sub(units, 1, -d - 1) end
  return sign .. string.sub(units, 1, -d - 1) .. '.' .. tail
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

-- raise adds signed strings to fields of a hash and answers all the new values. It reads once and writes once; only what is too long
-- for Lua's numbers is added by Redis.
local function raise(key, fields, deltas)
  local values = redis.call('HMGET', key, unpack(fields))
  local changes, n = {}, 0
  for i = 1, #fields do
    local field, value, delta = fields[i], values[i] or '0', deltas[i]
    if delta ~= '0' then
      if #value > 15 or #delta > 15 then
        redis.call('HINCRBY', key, field, delta)
        value = redis.call('HGET', key, field)
      else
        value = whole(value + delta)
        changes[n + 1], changes[n + 2] = field, value
        n = n + 2
      end
    end
    values[i] = value
  end
  if n > 0 then redis.call('HSET', key, unpack(changes)) end
  return values
end

-- move changes what a player can spend by delta and what is held by held (signed strings, '0' for none), and tells the player with
-- user.balance; where delta is not '0' it writes the player's ledger line too. why and ref may be any text. One more event to
-- the player may follow: its kind and data. It answers the new balance and the new held amount. The running totals are the caller's: book().
local function move(verb, nonce, wallet, lines, events, token, decimals, delta, held, why, ref, kind, data)
  local moved = delta ~= '0' or held ~= '0'
  local after = raise(wallet, {'free:' .. token, 'held:' .. token, 'line', 'seq'},
    {delta, held, delta ~= '0' and '1' or '0', moved and kind and '2' or '1'})
  local free, kept, line, seq = unpack(after)
  if delta ~= '0' then
    redis.call('XADD', lines, line .. '-0', 'at', now, 'tok', token, 'delta', delta, 'after', free, 'why', why, 'ref', ref)
  end
  if moved then
    emit(verb, events, 32, nonce, kind and whole(seq - 1) or seq, 'user.balance', '', '{"tokenId":"' .. token ..
      '","volume":' .. decimal(free, decimals) .. ',"amount":"' .. free ..
      '","held":' .. decimal(kept, decimals) .. ',"heldAmount":"' .. kept ..
      '","delta":' .. decimal(delta, decimals) .. ',"deltaAmount":"' .. delta ..
      '","reason":' .. cjson.encode(why) .. ',"ref":' .. cjson.encode(ref) .. '}')
  end
  if kind then emit(verb, events, 32, nonce, seq, kind, '', data) end
  redis.call('PEXPIRE', events, 3600000)
  return free, kept
end

-- book appends the double entry, whose postings look like 'w:7:-250;e:<room>:250' and sum to zero, and moves the running totals with it:
-- accounts (minted, wallets, escrow, house) by deltas. It answers the entry's number and the new totals, {seq, …accounts}.
local function book(totals, stream, token, why, ref, postings, accounts, deltas)
  local fields, by = {'seq'}, {'1'}
  for i = 1, #accounts do fields[i + 1], by[i + 1] = accounts[i] .. ':' .. token, deltas[i] end
  local after = raise(totals, fields, by)
  redis.call('XADD', stream, after[1] .. '-0', 'at', now, 'tok', token, 'why', why, 'ref', ref, 'post', postings)
  return after
end
