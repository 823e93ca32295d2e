-- lib_tour: which leader may drive the tournaments of a game.
-- is_replaced reports whether the leader with a fence has a successor. A caller that is no leader
-- has the fence ''.
local function is_replaced(fence_key, fence)
  local newest = redis.call('GET', fence_key)
  return fence ~= '' and newest and tonumber(fence) < tonumber(newest)
end

-- keep_fence makes older leaders change nothing any more.
local function keep_fence(fence_key, fence)
  if fence ~= '' then redis.call('SET', fence_key, fence) end
end
