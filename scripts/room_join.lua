-- room_join: seats a player and takes the stake, or changes nothing.
-- USES  clock event money receipt room
-- KEYS  1 room 2 events 3 receipt 4 due 5 open 6 created 7 started 8 finished 9 cancelled 10 all 11 every 12 totals 13 ledger
--       then wallet, lines and events of each in purses …
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl 5 who 6 uid 7 game 8 purses
--       9 profile 10 friend (of the creator: 1, 0, or empty when not asked yet)
-- GIVES ok replay stale idempotency_key_reused room_not_found room_closed already_started banned friends_only room_full insufficient_funds
-- KEEPS pot is the sum of the stakes; seq and pos are those of the last event; an index names a room exactly while it is so
local profile, friend = ARGV[9], ARGV[10]

local again = seen(receipt_key, fingerprint)
if again then return again end
if not open_room() or R.game ~= game then return refuse('room_not_found') end
if repeated() then return done() end
local seat = seat_of(uid)
local closed_circle = R.vis == 'private' or R.friends == '1'
if closed_circle and not seat and uid ~= R.creator then
  if friend == '' then return answer('stale') end
  if friend == '0' and R.vis == 'private' then return refuse('room_not_found') end
end
if R.status == 'FINISHED' or R.status == 'CANCELLED' then return refuse('room_closed') end
if seat and seat.state == 'active' then return done() end
if R.status ~= 'CREATED' then return refuse('already_started') end
if R['ban:' .. uid] then return refuse('banned') end
if friend == '0' and closed_circle and not seat then return refuse('friends_only') end
if not seat and taken() >= tonumber(R.max) then return refuse('room_full') end
local poor = affords(uid)
if poor then return refuse(unpack(poor)) end

change()
sit(uid, 'active', R.entry, profile)
charge(uid)
tell('room.joined', '"user":' .. profile .. ',' .. members())
autostart()
save()
return done()
