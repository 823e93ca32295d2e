-- lib_asset: reads an asset and lists its fields in the order of a reply.
local ASSET_FIELDS = {'game', 'token', 'decimals', 'price', 'on', 'stock', 'limit', 'sold', 'ver', 'name', 'meta',
  'created'}

-- read_asset returns the fields of an asset by name, false for those that are absent.
local function read_asset(key)
  local values, asset = redis.call('HMGET', key, unpack(ASSET_FIELDS)), {}
  for i = 1, #ASSET_FIELDS do asset[ASSET_FIELDS[i]] = values[i] end
  return asset
end

-- list_asset_values returns the values of an asset in the order of ASSET_FIELDS.
local function list_asset_values(asset)
  local values = {}
  for i = 1, #ASSET_FIELDS do values[i] = asset[ASSET_FIELDS[i]] end
  return values
end
