-- room_kick: takes a player out before the start, gives the stake back and perhaps bars the way back; or changes nothing.
-- USES  clock event money receipt room
-- KEYS  1 room 2 events 3 receipt 4 due 5 open 6 created 7 started 8 finished 9 cancelled 10 all 11 every 12 totals 13 ledger
--       then wallet, lines and events of each in purses …
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl 5 who 6 uid 7 game 8 purses
--       9 target 10 ban
-- GIVES ok replay idempotency_key_reused room_not_found room_closed not_host already_started not_participant
-- KEEPS pot is the sum of the stakes; seq and pos are those of the last event; an index names a room exactly while it is so
local target, ban = ARGV[9], ARGV[10]

local again = seen(receipt_key, fingerprint)
if again then return again end
if not open_room() or R.game ~= game then return refuse('room_not_found') end
if repeated() then return done() end
if R.vis == 'private' and uid ~= '' and not seat_of(uid) then return refuse('room_not_found') end
if R.status == 'FINISHED' or R.status == 'CANCELLED' then return refuse('room_closed') end
if uid ~= '' and uid ~= R.host then return refuse('not_host') end
if R.status ~= 'CREATED' then return refuse('already_started') end
local seat = seat_of(target)
if not seat then return refuse('not_participant') end

change()
if ban == '1' then put('ban:' .. target, '1') end
give_back(seat)
rise(target)
tell('room.left', '"userId":' .. target .. ',"reason":"' .. (ban == '1' and 'banned' or 'kicked') .. '",' .. members())
rehost()
if #active() == 0 then cancel('empty') else autostart() end
save()
return done()
