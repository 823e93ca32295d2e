-- presence_set: stores of which players of a room a node has sockets, and emits room.connected and
-- room.disconnected for those of whom that changes something; or changes nothing.
-- INCLUDES  clock event
-- FLAGS     allow-oom
-- KEYS      1 room  2 events  3 lease
-- ARGV      1 publish  2 nonce  3 lease: id of the lease  4 number: of the call  5 room_id
--           6 grace_ms  7 of_ended: 1 for a lease that has ended  8 here: ids of users with a
--           socket  9 gone: ids of users without one any more, or * for all others
-- CONFIRM   no: nodes repeat which players are here
-- RETURNS   ok stale
-- INVARIANT a player with a seat is connected while a lease is in the player's record; each change
--           of that is one event, as long as the room has not ended; a lease that has ended, and a
--           call older than the last one, change nothing; live has the position of the last event;
--           who comes when a window for reports is over was not there in the window
-- The ids of the users here who have a seat follow ok.
local known = redis.call('HMGET', lease_key, 'ended', 'call', room_id)
local has_ended, last_number, has_room = known[1] or '0', known[2] or '0', known[3]
if has_ended ~= of_ended or of_ended == '0' and tonumber(number) < tonumber(last_number) then return {'stale'} end
local live, window = unpack(redis.call('HMGET', room_key, 'live', 'window'))
UNPACK(live or '', room_live without nonce)
if not status or status == 'FINISHED' or status == 'CANCELLED' then
  if has_room then redis.call('HDEL', lease_key, room_id) end
  return {'ok'}
end

-- read_presence returns the order of a player's active seat, "" without one, and the player's
-- record: of which seat was told, until when the others wait, and the leases.
local function read_presence(room, user)
  local fields = redis.call('HMGET', room, 's' .. user, 'p' .. user)
  UNPACK(fields[1] or '', room_seat: state order)
  local told, until_ms, leases = string.match(fields[2] or '||', PATTERN(room_presence: order until leases))
  return state == 'active' and order or '', told, until_ms, leases
end

local own = lease .. ',' -- the ids of leases are equally long
local reply, is_here, left, events, writes, drops = {'ok'}, {}, {}, {}, {}, {}
local now_ms, now = read_clock()
local window_ends, absent
if window then window_ends, absent = string.match(window, PATTERN(room_window: window_ends absent)) end
local is_window_over = window and status == 'STARTED' and now_ms >= tonumber(window_ends)
local stays, is_new = false, false -- whether the lease has a player here, and one that it had not

for user in string.gmatch(here, '%d+') do
  is_here[user] = true
  local order, told, until_ms, leases = read_presence(room_key, user)
  local has_own = string.find(leases, own, 1, true)
  if order ~= '' then
    reply[#reply + 1], stays = user, true
    if not has_own then leases, is_new = leases .. own, true end
    local is_told = told == order and until_ms == ''
    if not is_told then
      events[#events + 1] = {'room.connected', user}
      local absence = told == order and until_ms or ''
      if is_window_over and string.find(absent, ';' .. user .. ':' .. absence .. ';', 1, true) then
        absent = absent .. ';' .. user .. ':late;'
        writes[#writes + 1], writes[#writes + 2] = 'window', PACK(room_window)
      end
    end
    if not is_told or not has_own then
      writes[#writes + 1], writes[#writes + 2] = 'p' .. user, order .. '||' .. leases
    end
  elseif has_own then
    left[#left + 1] = user
  end
end
if gone == '*' then
  for _, field in ipairs(redis.call('HKEYS', room_key)) do
    local user = string.match(field, '^p(%d+)$')
    if user and not is_here[user] then left[#left + 1] = user end
  end
  table.sort(left, function(a, b) return tonumber(a) < tonumber(b) end)
else
  for user in string.gmatch(gone, '%d+') do left[#left + 1] = user end
end
local grace_until = string.format('%d', now_ms + grace_ms)
for _, user in ipairs(left) do
  local order, told, until_ms, leases = read_presence(room_key, user)
  local first, last = string.find(leases, own, 1, true)
  if first then leases = string.sub(leases, 1, first - 1) .. string.sub(leases, last + 1) end
  if leases == '' and (order == '' or order ~= told) then
    if told ~= '' then drops[#drops + 1] = 'p' .. user end
  elseif first then
    if leases == '' then
      until_ms = grace_until
      events[#events + 1] = {'room.disconnected', user .. '|' .. until_ms}
    end
    writes[#writes + 1], writes[#writes + 2] = 'p' .. user, told .. '|' .. until_ms .. '|' .. leases
  end
end

for _, event in ipairs(events) do
  seq = string.format('%d', seq + 1)
  emit_event(publish, events_key, seq, nonce, now, event[1], event[2])
end
if #events > 0 then redis.call('HSET', room_key, 'live', PACK(room_live)) end
if #writes > 0 then redis.call('HSET', room_key, unpack(writes)) end
if #drops > 0 then redis.call('HDEL', room_key, unpack(drops)) end
local has_changed = #writes + #drops > 0
if of_ended == '0' and number ~= last_number and
    (has_changed or gone ~= '*' and (gone ~= '' or #reply > 1)) then
  redis.call('HSET', lease_key, 'call', number)
end
if stays and not has_room then redis.call('HSET', lease_key, room_id, '1') end
if gone == '*' and has_room and not stays then redis.call('HDEL', lease_key, room_id) end
return reply
