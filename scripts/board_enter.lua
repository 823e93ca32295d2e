-- board_enter: gives a player a place in one of the open cohorts of a league's tier in a season, or
-- changes nothing when the player has one.
-- KEYS      1 season  2 details
-- ARGV      1 user  2 tier  3 size: of a cohort  4 shards: shards of the leaderboard  5 shard:
--           number of the shard  6 draw: a random whole number below 2^32
-- RETURNS   ok
-- INVARIANT a cohort gives at most its size of places; a player has one cohort in a season; each
--           free place of the open cohorts is drawn as likely as any other
-- After ok follows the cohort, "<tier>:<number>". Its number is that of no cohort on another shard.
-- Two cohorts are open at first, and one more for each four that are filled, up to eight: players
-- who enter together are not together, and few cohorts are left with free places.
size, draw = tonumber(size), tonumber(draw)

local own = redis.call('HGET', details_key, user .. ':c')
if own then return {'ok', own} end
local stored = redis.call('HMGET', season_key, 'l:' .. tier, 'o:' .. tier)
local places, numbers, counts, free = tonumber(stored[1] or '0'), {}, {}, 0
local opened = math.ceil(places / size)
local function add_cohort(number, count)
  numbers[#numbers + 1], counts[#counts + 1], free = number, count, free + size - count
end
for number, count in string.gmatch(stored[2] or '', '(%d+):(%d+),') do add_cohort(tonumber(number), tonumber(count)) end
-- A release that fills cohorts in their order counts single places: the last one is open, too.
if places % size ~= 0 then add_cohort(opened - 1, places % size) end
local wanted = math.min(8, 2 + math.floor((opened * size - free) / (4 * size)))
while #numbers < wanted do
  add_cohort(opened, 0)
  opened = opened + 1
end

local left, chosen = places == 0 and 0 or draw % free, 1 -- the first player begins the first cohort
while left >= size - counts[chosen] do
  left, chosen = left - (size - counts[chosen]), chosen + 1
end
counts[chosen] = counts[chosen] + 1
local open = {}
for i, number in ipairs(numbers) do
  if counts[i] < size then open[#open + 1] = string.format('%d:%d,', number, counts[i]) end
end
own = tier .. ':' .. string.format('%d', numbers[chosen] * shards + shard)

redis.call('HSET', season_key, 'l:' .. tier, string.format('%d', opened * size), 'o:' .. tier, table.concat(open))
redis.call('HSET', details_key, user .. ':c', own)
return {'ok', own}
