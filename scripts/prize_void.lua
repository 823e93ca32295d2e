-- prize_void: returns the pool of a source of prizes to where it came from, before anything of it
-- is paid, or changes nothing. A source that was not funded never will be.
-- INCLUDES  clock amounts
-- FLAGS     allow-oom
-- KEYS      1 prize  2 totals  3 ledger
-- ARGV      1 nonce  2 source  3 reason: escaped
-- LEDGER    if units move
-- RETURNS   ok stale
-- INVARIANT the account of a source that is VOID is empty
-- Stale means that a line is paid, or that more is in the pool than what was funded.
local stored = redis.call('HMGET', prize_key, 'state', 'next', 'pool', 'funded', 'from', 'token')
local pool, token = stored[3] or '0', stored[6] or ''
if stored[1] == 'VOID' then return {'ok', nonce} end
if stored[1] == 'PAID' or (stored[2] or '0') ~= '0' or pool ~= (stored[4] or '0') then return 'stale' end
local total, account, minted = 'minted:' .. token, 'h', nil
if stored[5] == 'mint' then
  account, minted = 'm', subtract_amounts(redis.call('HGET', totals_key, total) or pool, pool)
end

if pool ~= '0' then
  local _, now = read_clock()
  redis.call('RPUSH', ledger_key, -- first: it fails, before anything was moved, when SET spoiled the list
    now .. '|' .. nonce .. '|' .. token .. '|prize_void|' .. source .. '|p:-' .. pool .. ';' .. account .. ':' .. pool)
  if minted then redis.call('HSET', totals_key, total, minted) end
end
redis.call('HSET', prize_key, 'state', 'VOID', 'reason', reason)
if pool ~= '0' then return 'ok' end
return {'ok', nonce}
