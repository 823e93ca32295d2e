-- lib_find_host: who is the host when the host goes. find_host returns the earliest active player
-- but the leaver, nil when there is none.
local function find_host(seats, leaver)
  for _, seat in ipairs(seats) do
    if seat.state == 'active' and seat.user ~= leaver then return seat.user end
  end
end
