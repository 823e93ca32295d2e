-- lib_read_token: returns id, decimals, name, logo, asset name and policy of a token, false for
-- absent.
local function read_token(token)
  return redis.call('HMGET', token, 'id', 'decimals', 'name', 'logo', 'asset', 'policy')
end
