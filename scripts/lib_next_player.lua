-- lib_next_player: the seating order as a circle.
-- next_player returns the active player who sits next after a user. It returns the user when no
-- other player is active.
local function next_player(seats, user)
  local first, passed
  for _, seat in ipairs(seats) do
    if seat.user == user then
      passed = true
    elseif seat.state == 'active' then
      if passed then return seat.user end
      first = first or seat.user
    end
  end
  return first or user
end
