-- history_read: returns how far the ledger of a game is; it changes nothing.
-- FLAGS     no-writes
-- KEYS      1 ledger  2 ledger_base
-- ARGV      1 number
-- RETURNS   ok
-- ok is followed by the number of the last entry, the heads of that entry, of the entry with the
-- given number and of the first one, and how many entries left the ledger. A head is
-- "<ms>|<nonce>", '' when there is no such entry.
number = tonumber(number)

local base = tonumber(redis.call('GET', ledger_base_key) or '0')
local last = base + redis.call('LLEN', ledger_key)
local function read_head(n)
  if n <= base or n > last then return '' end
  local entry = redis.call('LINDEX', ledger_key, string.format('%d', n - base - 1))
  return string.match(entry, '^[^|]*|[^|]*')
end
return {'ok', string.format('%d', last), read_head(last), read_head(number), read_head(1), string.format('%d', base)}
