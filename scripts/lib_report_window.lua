-- lib_report_window: who is silent in the window of a room with consensus, and who was not there.
-- read_absence returns nil for a player who is connected to the room; else until when the others
-- wait for the player, "" for a player who was not connected since taking this seat.
local function read_absence(room_key, seat)
  local record = redis.call('HGET', room_key, 'p' .. seat.user)
  local order, until_ms = string.match(record or '||', PATTERN(room_presence: order until))
  if order ~= string.format('%d', seat.order) then return '' end
  if until_ms == '' then return nil end
  return until_ms
end

-- list_absent returns the players with an active seat who are not connected, ";<user>:<until>;"
-- each, without the player who reports.
local function list_absent(room_key, seats, reporter)
  local absent = {}
  for _, seat in ipairs(seats) do
    local until_ms = seat.state == 'active' and seat.user ~= reporter and read_absence(room_key, seat)
    if until_ms then absent[#absent + 1] = ';' .. seat.user .. ':' .. until_ms .. ';' end
  end
  return table.concat(absent)
end

-- was_absent reports whether a player was not connected at any time since list_absent: each
-- connection that is lost changes until when the others wait. ";<user>:late;" in absent stands for
-- a player who came when the window was over.
local function was_absent(room_key, seat, absent)
  if string.find(absent, ';' .. seat.user .. ':late;', 1, true) then return true end
  local until_ms = read_absence(room_key, seat)
  return until_ms and string.find(absent, ';' .. seat.user .. ':' .. until_ms .. ';', 1, true) ~= nil
end
