-- lib_room: loads a room into a table and saves what was changed of it.
-- INCLUDES  room_params
-- The table of a room has, as texts:
--   the members named in SETTINGS, which never change; times are in ms
--   the members named in STATE
--   seats: the seats in seating order, each with the members named in SEAT
--   fields: the fields of its hash as they are stored, the packed ones included
-- Functions change this table first; save_room writes it. The hash has few fields, since reading
-- and writing them is what a small change costs.
local SETTINGS = {'id', 'game', 'token', 'decimals', 'entry', 'max_players', 'min_players', 'friends_only',
  'visibility', 'autostart', 'idle_ms', 'age_ms', 'match_ms', 'retention_ms', 'creator'}
local STATE = {'status', 'host', 'version', 'position', 'pot', 'host_profile'}
local SEAT = {'user', 'state', 'ready', 'since', 'stake', 'profile'}

-- match_all returns the pattern that captures every part of a text of the named parts, with '|'
-- between them. The last part may have a '|' in it. One match is cheaper than a search for each.
local function match_all(names) return '^' .. string.rep('([^|]*)|', #names - 1) .. '(.*)$' end
local SETTINGS_PATTERN, STATE_PATTERN, SEAT_PATTERN = match_all(SETTINGS), match_all(STATE), match_all(SEAT)

-- unpack_text reads the named parts of a text into a table.
local function unpack_text(text, names, pattern, into)
  local parts = {string.match(text, pattern)}
  for i = 1, #names do into[names[i]] = parts[i] end
  return into
end

-- pack_text is the reverse of unpack_text.
local function pack_text(from, names)
  local parts = {}
  for i = 1, #names do parts[i] = from[names[i]] end
  return table.concat(parts, '|')
end

-- set_field changes a field of the room's hash.
local function set_field(room, field, value)
  local changes = room.changes
  room.fields[field] = value
  changes[#changes + 1] = field
  changes[#changes + 1] = value
end

-- count_taken_seats counts the seats that a newcomer cannot have.
local function count_taken_seats(room)
  local n = 0
  for _, seat in ipairs(room.seats) do
    if seat.state ~= 'forfeited' then n = n + 1 end
  end
  return n
end

local function is_open(room)
  return room.status == 'CREATED' and room.visibility == 'public' and
    count_taken_seats(room) < tonumber(room.max_players)
end

local function parse_settings(room, settings) unpack_text(settings, SETTINGS, SETTINGS_PATTERN, room) end

-- new_room returns a room that is stored nowhere; fields has at least its settings ("set").
local function new_room(key, events, fields)
  local room = {key = key, events = events, fields = fields, changes = {}, seats = {}, was_open = false}
  parse_settings(room, fields.set)
  return room
end

-- load_room returns the room, or nil when it is not there.
local function load_room(key, events)
  local flat = redis.call('HGETALL', key)
  if #flat == 0 then return nil end
  local fields = {}
  for i = 1, #flat, 2 do fields[flat[i]] = flat[i + 1] end
  local room = new_room(key, events, fields)
  unpack_text(fields.state, STATE, STATE_PATTERN, room)
  for text in string.gmatch(fields.seats or '', '[^\t]+') do
    room.seats[#room.seats + 1] = unpack_text(text, SEAT, SEAT_PATTERN, {})
  end
  room.old_status, room.was_open = room.status, is_open(room)
  return room
end

-- save_room writes what changed, and moves the room in the indexes.
local function save_room(room)
  set_field(room, 'state', pack_text(room, STATE))
  if room.seats_changed then
    local list = {}
    for i, seat in ipairs(room.seats) do list[i] = pack_text(seat, SEAT) end
    set_field(room, 'seats', table.concat(list, '\t'))
  end
  redis.call('HSET', room.key, unpack(room.changes))
  if room.visibility ~= 'public' then return end
  if room.status ~= room.old_status then
    if room.old_status then redis.call('ZREM', status_keys[room.old_status], room.id) end
    redis.call('ZADD', status_keys[room.status], '0', room.id)
  end
  local open = is_open(room)
  if open and not room.was_open then redis.call('ZADD', open_key, '0', room.id) end
  if room.was_open and not open then redis.call('ZREM', open_key, room.id) end
end
