-- room_ready: notes that a player is ready, or no longer; or changes nothing.
-- USES  clock event money receipt room
-- KEYS  1 room 2 events 3 receipt 4 due 5 open 6 created 7 started 8 finished 9 cancelled 10 all 11 every 12 totals 13 ledger
--       then wallet, lines and events of each in purses …
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl 5 who 6 uid 7 game 8 purses
--       9 ready
-- GIVES ok replay idempotency_key_reused room_not_found room_closed already_started not_participant
-- KEEPS pot is the sum of the stakes; seq and pos are those of the last event; an index names a room exactly while it is so
local ready = ARGV[9]

local again = seen(receipt_key, fingerprint)
if again then return again end
if not open_room() or R.game ~= game then return refuse('room_not_found') end
if repeated() then return done() end
local seat = seat_of(uid)
if R.vis == 'private' and not seat then return refuse('room_not_found') end
if R.status == 'FINISHED' or R.status == 'CANCELLED' then return refuse('room_closed') end
if not seat or seat.state ~= 'active' then return refuse('not_participant') end
if R.status ~= 'CREATED' then return refuse('already_started') end
if seat.ready == ready then return done() end

change()
alter(seat, 'ready', ready)
tell('room.ready', '"userId":' .. uid .. ',"ready":' .. (ready == '1' and 'true' or 'false'))
autostart()
save()
return done()
