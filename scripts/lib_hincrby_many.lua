-- lib_hincrby_many: adds signed amounts to fields of a hash and returns all the new values.
-- INCLUDES  int_to_string
-- It reads once and writes once. Only what is too long for Lua's numbers is added by Redis.
local function hincrby_many(key, fields, deltas)
  local values = redis.call('HMGET', key, unpack(fields))
  local changes, n = {}, 0
  for i = 1, #fields do
    local field, value, delta = fields[i], values[i] or '0', deltas[i]
    if delta ~= '0' then
      if #value > 15 or #delta > 15 then
        redis.call('HINCRBY', key, field, delta)
        value = redis.call('HGET', key, field)
      else
        value = int_to_string(value + delta)
        changes[n + 1], changes[n + 2] = field, value
        n = n + 2
      end
    end
    values[i] = value
  end
  if n > 0 then redis.call('HSET', key, unpack(changes)) end
  return values
end
