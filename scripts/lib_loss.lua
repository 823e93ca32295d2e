-- lib_loss: what the ledger of a game is known to lack.
-- write_loss adds what a node misses to what is known of a game and an epoch: the largest number of
-- an entry that was there, the least number of the last one that is, and for each node how many of
-- the entries it had acknowledged, '' when it does not know. Written twice it changes nothing more.
-- A record is "<known>|<present>|<at_ms>|<node>=<count>;…".
local function write_loss(losses_key, epoch, game, at_ms, node, known, present, acknowledged)
  local field = epoch .. ':' .. game
  local kept = redis.call('HGET', losses_key, field)
  local counts = ''
  if kept then
    local was_known, was_present, was_at, was_counts = string.match(kept, '^(%d+)|(%d+)|(%d+)|?(.*)$')
    if tonumber(was_known) > tonumber(known) then known = was_known end
    if tonumber(was_present) < tonumber(present) then present = was_present end
    at_ms = was_at
    for other, count in string.gmatch(was_counts, '(%w+)=(%d+);') do
      if other ~= node then
        counts = counts .. other .. '=' .. count .. ';'
      elseif acknowledged == '' or tonumber(count) > tonumber(acknowledged) then
        acknowledged = count
      end
    end
  end
  if acknowledged ~= '' then counts = counts .. node .. '=' .. acknowledged .. ';' end
  redis.call('HSET', losses_key, field, known .. '|' .. present .. '|' .. at_ms .. '|' .. counts)
end
