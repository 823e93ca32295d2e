-- lib_skewed_clock: whether the store's clock may end something. A script that ends something
-- because of the time takes the time of the node that calls it, and changes nothing when the two
-- are more than five seconds apart: then one of them is wrong. The reply is stale with "clock".
-- is_skewed reports whether the store's time and the node's are too far apart.
local function is_skewed(now_ms, node_ms)
  return math.abs(now_ms - node_ms) > 5000
end
