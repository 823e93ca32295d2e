-- wallet_limit: sets limits for a player's own stakes of a token, or changes nothing. A tighter
-- limit counts at once, a looser one a day later, and an exclusion is never shortened.
-- INCLUDES  clock amounts
-- KEYS      1 wallet
-- ARGV      1 token  2 by_staff: who only tighten: 1 or 0  3 new_stake: highest stake, '' for no
--           limit, '=' to keep it, as in the next two  4 new_rooms: most rooms with a stake
--           5 new_loss: highest loss in 24 hours  6 new_excluded: excluded until, in ms: '0' for
--           not excluded, '=' to keep it  7 counted_at: last event of the player, its number when
--           open and hours were counted, '' when they were not  8 open: as wallet_limits has it
--           9 hours: likewise
-- RETURNS   ok stale forbidden self_excluded
-- INVARIANT no limit is looser than the player asked for a day ago
-- Stale means that the player has no limits for the token yet, so that open and hours must be
-- counted, or that money moved since. The name of the limit follows forbidden, the end of the
-- exclusion self_excluded.
by_staff = by_staff == '1'

-- is_tight reports whether a limit, '' for none, is no looser than another one.
local function is_tight(limit, other)
  return other == '' or limit ~= '' and has_at_least(other, limit)
end

-- change_limit returns a limit with the looser one that is to follow and from when, or nil when
-- staff would loosen it.
local function change_limit(wanted, limit, next_limit, from, now_ms)
  if from ~= '' and now_ms >= tonumber(from) then limit, next_limit, from = next_limit, '', '' end
  if wanted == '=' then return limit, next_limit, from end
  if is_tight(wanted, limit) then return wanted, '', '' end
  if by_staff then return nil end
  if from ~= '' and is_tight(wanted, next_limit) then return limit, wanted, from end
  return limit, wanted, string.format('%d', now_ms + 86400000)
end

local field, now_ms = ':limits:' .. token, read_clock()
local fields = redis.call('HMGET', wallet_key, ':seq', ':excluded', field)
local seq, excluded, limits = fields[1] or '0', fields[2] or '0', fields[3]
local is_limit = new_stake ~= '=' or new_rooms ~= '=' or new_loss ~= '='
if new_excluded ~= '=' then
  if now_ms < tonumber(excluded) and tonumber(new_excluded) < tonumber(excluded) then
    return {'self_excluded', excluded}
  end
  excluded = new_excluded
end
local counted = true
if is_limit then
  local stake, stake_next, stake_from, rooms, rooms_next, rooms_from, loss, loss_next, loss_from =
    '', '', '', '', '', '', '', '', ''
  if limits then
    stake, stake_next, stake_from, rooms, rooms_next, rooms_from, loss, loss_next, loss_from, open, hours =
      string.match(limits, PATTERN(wallet_limits: stake stake_next stake_from rooms rooms_next rooms_from
        loss loss_next loss_from open hours))
  else
    counted = counted_at == seq
  end
  stake, stake_next, stake_from = change_limit(new_stake, stake, stake_next, stake_from, now_ms)
  if not stake then return {'forbidden', 'maxStake'} end
  rooms, rooms_next, rooms_from = change_limit(new_rooms, rooms, rooms_next, rooms_from, now_ms)
  if not rooms then return {'forbidden', 'maxOpenRooms'} end
  loss, loss_next, loss_from = change_limit(new_loss, loss, loss_next, loss_from, now_ms)
  if not loss then return {'forbidden', 'maxLoss24h'} end
  limits = PACK(wallet_limits)
end
if not counted then return {'stale'} end

local flagged = redis.call('HGETALL', wallet_key)
for i = 1, #flagged, 2 do
  if string.byte(flagged[i]) ~= 58 and not string.find(flagged[i + 1], '|L', 1, true) then -- ":" is no token
    redis.call('HSET', wallet_key, flagged[i], flagged[i + 1] .. '|L')
  end
end
redis.call('HSET', wallet_key, ':excluded', excluded)
if is_limit then redis.call('HSET', wallet_key, field, limits) end
return {'ok'}
