-- board_enter: gives a player the next place in the open cohort of a league's tier in a season, or
-- changes nothing when the player has one.
-- KEYS      1 season  2 details
-- ARGV      1 user  2 tier  3 size of a cohort  4 shards of the leaderboard  5 number of the shard
-- RETURNS   ok
-- INVARIANT a cohort gives at most its size of places; a player has one cohort in a season
-- After ok follows the cohort, "<tier>:<number>". Its number is that of no cohort on another shard.
local season_key, details_key = KEYS[1], KEYS[2]
local user, tier, size, shards, shard = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

local own = redis.call('HGET', details_key, user .. ':c')
if own then return {'ok', own} end
local given = tonumber(redis.call('HGET', season_key, 'l:' .. tier) or '0')
own = tier .. ':' .. string.format('%d', math.floor(given / size) * shards + shard)

redis.call('HSET', season_key, 'l:' .. tier, string.format('%d', given + 1))
redis.call('HSET', details_key, user .. ':c', own)
return {'ok', own}
