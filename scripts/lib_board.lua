-- lib_board: the entries of a leaderboard. A member of its zsets is 7 bytes of the score, 7 of the
-- subscore, 6 of the time (ms) at which the score was reached and 6 of the user id, all big-endian,
-- so that the best member is the first. The record of a player is the first 20 of these bytes, the
-- number of submissions when there are more than one, its flags, and "-" with the nonce of the last
-- call without a receipt. Flags are letters: d details are stored, h hidden, s segments are stored.
local function pack_bytes(value, count)
  local bytes = {0, 0, 0, 0, 0, 0, 0} -- a table that grows costs more than all the rest
  for i = count, 1, -1 do
    local low = value % 256
    bytes[i], value = low, (value - low) / 256
  end
  return string.char(unpack(bytes, 1, count))
end

-- unpack_bytes returns the number that 7 bytes are.
local function unpack_bytes(text, first)
  local a, b, c, d, e, f, g = string.byte(text, first, first + 6)
  return (((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) * 256 + g
end

-- pack_score returns 7 bytes that sort as the order wants it: 2^52 is in their middle.
local function pack_score(units, order)
  return pack_bytes(order == 'asc' and 4503599627370496 + units or 4503599627370496 - units, 7)
end

local function unpack_score(text, first, order)
  local value = unpack_bytes(text, first)
  return order == 'asc' and value - 4503599627370496 or 4503599627370496 - value
end

-- read_record returns the parts of a record: the 20 bytes, submissions, flags and nonce.
local function read_record(record)
  local submissions, flags, nonce = string.match(record, '^(%d*)(%l*)%-?(%w*)$', 21)
  return string.sub(record, 1, 20), tonumber(submissions) or 1, flags, nonce
end

local function write_record(entries_key, user, key, submissions, flags, nonce)
  local count = submissions > 1 and string.format('%d', submissions) or ''
  redis.call('HSET', entries_key, user, key .. count .. flags .. (nonce ~= '' and '-' .. nonce or ''))
end

-- is_before reports whether a member is better than another. It compares bytes, since Lua compares
-- texts as the locale of the server orders them.
local function is_before(a, b)
  local x, y = unpack_bytes(a, 1), unpack_bytes(b, 1)
  for i = 8, 26 do
    if x ~= y then break end
    x, y = string.byte(a, i), string.byte(b, i)
  end
  return x < y
end

-- count_top raises the version of the first 100 when a member is among them or comes there. It must
-- be called before the zset changes. The hundredth member is found without the way through a large
-- zset that ZRANK takes.
local function count_top(season_key, rank_key, member)
  local hundredth = redis.call('ZRANGE', rank_key, '99', '99')[1]
  if not hundredth or not is_before(hundredth, member) then redis.call('HINCRBY', season_key, 'top', '1') end
end
