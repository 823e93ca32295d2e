-- room_transfer: makes a seated player the host, or changes nothing.
-- USES  clock event money receipt room
-- KEYS  1 room 2 events 3 receipt 4 due 5 open 6 created 7 started 8 finished 9 cancelled 10 all 11 every 12 totals 13 ledger
--       then wallet, lines and events of each in purses …
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl 5 who 6 uid 7 game 8 purses
--       9 target
-- GIVES ok replay idempotency_key_reused room_not_found room_closed not_host not_participant
-- KEEPS pot is the sum of the stakes; seq and pos are those of the last event; an index names a room exactly while it is so
local target = ARGV[9]

local again = seen(receipt_key, fingerprint)
if again then return again end
if not open_room() or R.game ~= game then return refuse('room_not_found') end
if repeated() then return done() end
if R.vis == 'private' and uid ~= '' and not seat_of(uid) then return refuse('room_not_found') end
if R.status == 'FINISHED' or R.status == 'CANCELLED' then return refuse('room_closed') end
if uid ~= '' and uid ~= R.host then return refuse('not_host') end
local seat = seat_of(target)
if not seat or seat.state ~= 'active' then return refuse('not_participant') end
if target == R.host then return done() end

change()
R.host, R.hostp = target, seat.profile
tell('room.host_changed', '"userId":' .. target)
save()
return done()
