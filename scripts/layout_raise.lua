-- layout_raise: raises the layout of the store, or changes nothing when another node has reported
-- than those that the caller looked at. A node reports before it reads the layout for the last time
-- at its start, so that one that is not seen here sees the new layout. A full store takes no
-- reports, and does not run this script.
-- KEYS      1 meta  2 nodes
-- ARGV      1 from_layout  2 to_layout  then the ids of all nodes that have reported
-- CONFIRM   no: an operator repeats it when it is lost
-- RETURNS   ok stale
-- INVARIANT the layout only rises
local layout = redis.call('HGET', meta_key, 'layout')
if layout == to_layout then return 'ok' end -- the reply to this very call was lost
if layout ~= from_layout or tonumber(to_layout) < tonumber(from_layout) then return 'stale' end
if redis.call('HLEN', nodes_key) ~= #ARGV - NEXT_ARG + 1 then return 'stale' end
for i = NEXT_ARG, #ARGV do
  if redis.call('HEXISTS', nodes_key, ARGV[i]) == 0 then return 'stale' end
end
redis.call('HSET', meta_key, 'layout', to_layout)
return 'ok'
