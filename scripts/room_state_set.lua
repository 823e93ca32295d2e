-- room_state_set: changes values of the shared state of a room, or changes nothing.
-- INCLUDES  clock receipt call event marks save_change
-- KEYS      1 room  2 events
-- ARGV      4 publish  5 user: '' for the game's server  6 caller_game: game  7 host_only: 1 when a
--           name is the host's alone  8 read_version: version that the caller read  9 patch: the
--           changed values as a JSON object  10 deleted: the deleted names with commas
--           11 max_bytes  12 max_names  then pairs of a changed name and its value
-- RETURNS   ok replay idempotency_key_reused room_not_found room_closed room_disputed
--           not_participant not_host version_conflict limit_reached
-- INVARIANT bytes and names are those of the values; live has the position of the last event
-- The version of the state follows version_conflict, the name of the limit limit_reached.
local fields = redis.call('HMGET', room_key, 'settings', 'live', 's' .. user, 'marks', 'state')
local settings, seat, marks = fields[1], fields[3], fields[4]
if not settings then return refuse('room_not_found', nonce) end
UNPACK(settings, room_settings: game visibility)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game then return refuse('room_not_found', nonce) end
if is_resend(marks, nonce) then return 'ok' end
if visibility == 'private' and user ~= '' and not seat then return refuse('room_not_found', nonce) end
if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end
if user ~= '' and (not seat or string.byte(seat) ~= 97) then return refuse('not_participant', nonce) end -- not "active"
if host_only == '1' and user ~= host then return refuse('not_host', nonce) end
if status == 'DISPUTED' then return refuse('room_disputed', nonce) end
UNPACK(fields[5] or '0|2|0|0', room_state)
if state_version ~= read_version then return refuse('version_conflict', nonce, state_version) end

bytes, names = tonumber(bytes), tonumber(names)
-- The size of an object is its braces and, for each name, quotes, colon and comma.
local changes, removed = {}, {}
for i = NEXT_ARG, #ARGV, 2 do
  local field = 'k:' .. ARGV[i]
  local had = redis.call('HSTRLEN', room_key, field)
  bytes = bytes + #ARGV[i + 1] - had
  if had == 0 then names, bytes = names + 1, bytes + #ARGV[i] + 4 end
  changes[#changes + 1], changes[#changes + 2] = field, ARGV[i + 1]
end
for name in string.gmatch(deleted, '[^,]+') do
  local had = redis.call('HSTRLEN', room_key, 'k:' .. name)
  if had > 0 then
    names, bytes = names - 1, bytes - had - #name - 4
    removed[#removed + 1] = 'k:' .. name
  end
end
if bytes > tonumber(max_bytes) then return refuse('limit_reached', nonce, 'state_bytes', max_bytes) end
if names > tonumber(max_names) then return refuse('limit_reached', nonce, 'state_names', max_names) end

local _, now = read_clock()
local changed = now
state_version, seq = string.format('%d', state_version + 1), string.format('%d', seq + 1)
bytes, names, logged = string.format('%d', bytes), string.format('%d', names), logged + #patch + #deleted
emit_event(publish, events_key, seq, nonce, now, 'room.state', state_version .. '|' .. deleted .. '|' .. patch)
if logged > 65536 then -- 256 events of 16 KiB would be too much for one room
  redis.call('LTRIM', events_key, -32, -1)
  logged = 0
end
logged = string.format('%d', logged)
if removed[1] then redis.call('HDEL', room_key, unpack(removed)) end
save_change(room_key, receipt_key, fingerprint, ttl_ms, nonce, marks, 'live', PACK(room_live), 'state',
  PACK(room_state), unpack(changes))
return 'ok'
