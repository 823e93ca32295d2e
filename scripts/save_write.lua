-- save_write: makes a state the newest version of a save slot, or changes nothing. When the
-- versions of all slots are too large together, the oldest go, but never the newest of a slot.
-- INCLUDES  clock event user_event
-- KEYS      1 save  2 slots  3 progress  4 events  then the saves of the player's other slots when
--           versions may have to go
-- ARGV      1 publish  2 nonce  3 base: the version that the caller last read  4 checked: the
--           version that the rules were checked against  5 version: base + 1  6 message  7 mark
--           8 state  9 slot  10 line: of the slot in the list  11 max_slots: most slots
--           12 max_versions: versions kept  13 event_values: its members as JSON  14 max_bytes:
--           most bytes of all versions  15 with_others: with the other slots, 1 or 0
-- RETURNS   ok replay version_conflict stale limit_reached
-- INVARIANT versions of a slot count 1, 2, 3 … and each was checked against the one before it;
--           the list of slots says how many bytes all versions have, and they are not too many
max_slots, max_versions, max_bytes = tonumber(max_slots), tonumber(max_versions), tonumber(max_bytes)

local newest = redis.call('HGET', save_key, 'ver') or '0'
for old = tonumber(newest), math.max(1, tonumber(newest) - max_versions + 1), -1 do
  local old_version = string.format('%d', old)
  local old_mark = redis.call('HGET', save_key, old_version .. ':mark')
  if old_mark and string.sub(old_mark, 1, #message + 1) == message .. ' ' then
    return {'replay', old_version, old_mark}
  end
end
if newest ~= base then return {'version_conflict'} end
if newest ~= checked then return {'stale'} end
local stored_bytes = redis.call('HGET', slots_key, '')
local slot_count = redis.call('HLEN', slots_key) - (stored_bytes and 1 or 0)
local is_new = redis.call('HEXISTS', slots_key, slot) == 0
if is_new and slot_count >= max_slots then return {'limit_reached', 'slots'} end

local outdated = string.format('%d', version - max_versions)
local bytes = tonumber(stored_bytes or '0') + #state - redis.call('HSTRLEN', save_key, outdated)
local dropped = {}
if bytes > max_bytes then
  local other_count = slot_count - (is_new and 0 or 1)
  if with_others ~= '1' or #KEYS - NEXT_KEY + 1 ~= other_count then
    local needed = {'stale', 'bytes'}
    for _, name in ipairs(redis.call('HKEYS', slots_key)) do
      if name ~= '' and name ~= slot then needed[#needed + 1] = name end
    end
    return needed
  end
  local older = {}
  local function add_older(key, from, to)
    for number = from, to, -1 do
      local field = string.format('%d', number)
      local at = string.match(redis.call('HGET', key, field .. ':mark') or '', '^%S+ (%d+)')
      if at then
        older[#older + 1] = {
          key = key, field = field, at = tonumber(at), size = redis.call('HSTRLEN', key, field),
        }
      end
    end
  end
  add_older(save_key, tonumber(newest), math.max(1, version - max_versions + 1))
  for i = NEXT_KEY, #KEYS do
    local other_newest = tonumber(redis.call('HGET', KEYS[i], 'ver') or '0')
    add_older(KEYS[i], other_newest - 1, math.max(1, other_newest - max_versions + 1))
  end
  table.sort(older, function(a, b) return a.at < b.at end)
  for _, one in ipairs(older) do
    if bytes <= max_bytes then break end
    bytes = bytes - one.size
    dropped[#dropped + 1] = one
  end
  if bytes > max_bytes then return {'limit_reached', 'bytes'} end
end

for _, one in ipairs(dropped) do redis.call('HDEL', one.key, one.field, one.field .. ':mark') end
redis.call('HDEL', save_key, outdated, outdated .. ':mark')
redis.call('HSET', save_key, 'ver', version, version, state, version .. ':mark', mark)
redis.call('HSET', slots_key, slot, line, '', string.format('%d', bytes))
local _, now = read_clock()
emit_user_event(publish, progress_key, events_key, nonce, now, 'user.progress', event_values)
return {'ok'}
