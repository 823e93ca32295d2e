-- game_count_player: counts a player who is about to be made, or changes nothing.
-- INCLUDES  clock
-- KEYS      1 new_players
-- ARGV      1 most: most players of a day
-- RETURNS   ok limit_reached
-- INVARIANT no more players are counted in a day than a game may have
most = tonumber(most)

local now = read_clock()
local today = string.format('%d', math.floor(now / 86400000))
local day, players = string.match(redis.call('GET', new_players_key) or '', '^(%d+)|(%d+)$')
if day ~= today then players = '0' end
if tonumber(players) >= most then return {'limit_reached'} end
redis.call('SET', new_players_key, today .. '|' .. string.format('%d', players + 1), 'PX', 2 * 86400000)
return {'ok'}
