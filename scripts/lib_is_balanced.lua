-- lib_is_balanced: reports whether payouts and rake share out the pot exactly, among users with a
-- seat.
-- INCLUDES  find_seat
-- payouts looks like "<user>:<place>:<units>;…", place 0 for a forfeited seat. No partial sum
-- passes the pot, so every one is exact.
local function is_balanced(room, payouts, rake)
  local pot, sum = tonumber(room.pot), tonumber(rake)
  for id, units in string.gmatch(payouts, '(%d+):%d+:(%d+)') do
    if not find_seat(room, id) or tonumber(units) > pot or sum > pot then return false end
    sum = sum + tonumber(units)
  end
  return sum == pot
end
