-- room_leave: takes a player out before the start and gives the stake back; forfeits the seat after it; or changes nothing.
-- USES  clock event money receipt room
-- KEYS  1 room 2 events 3 receipt 4 due 5 open 6 created 7 started 8 finished 9 cancelled 10 all 11 every 12 totals 13 ledger
--       then wallet, lines and events of each in purses …
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl 5 who 6 uid 7 game 8 purses
--       9 results 10 plan 11 rake 12 ver (what the last one left over gets, computed for that version; empty when not known yet)
-- GIVES ok replay stale idempotency_key_reused room_not_found room_closed not_participant
-- KEEPS pot is the sum of the stakes; seq and pos are those of the last event; an index names a room exactly while it is so
local results, plan, rake, ver = ARGV[9], ARGV[10], ARGV[11], ARGV[12]

local again = seen(receipt_key, fingerprint)
if again then return again end
if not open_room() or R.game ~= game then return refuse('room_not_found') end
if repeated() then return done() end
local seat = seat_of(uid)
if R.vis == 'private' and not seat then return refuse('room_not_found') end
if R.status == 'FINISHED' or R.status == 'CANCELLED' then return refuse('room_closed') end
if not seat or seat.state == 'forfeited' then return refuse('not_participant') end
local left = #active() - (seat.state == 'active' and 1 or 0)
local void = left == 0
local won = R.status == 'STARTED' and left == 1 and R.entry ~= '0'
if R.status == 'STARTED' and (void or won) and staked_without_purse() then return answer('stale') end
if won and (ver ~= R.ver or not balanced(plan, rake)) then return answer('stale') end

change()
if R.status == 'STARTED' then
  alter(seat, 'state', 'forfeited')
  tell('room.left', '"userId":' .. uid .. ',"reason":"forfeited",' .. members())
else
  give_back(seat)
  rise(uid)
  tell('room.left', '"userId":' .. uid .. ',"reason":"left",' .. members())
end
rehost()
if void then
  cancel('empty')
elseif won then
  settle(results, plan, rake)
else
  autostart()
end
save()
return done()
