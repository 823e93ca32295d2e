-- room_cancel: ends the room without a result and gives every stake back, or changes nothing.
-- USES  clock event money receipt room
-- KEYS  1 room 2 events 3 receipt 4 due 5 open 6 created 7 started 8 finished 9 cancelled 10 all 11 every 12 totals 13 ledger
--       then wallet, lines and events of each in purses …
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl 5 who 6 uid 7 game 8 purses
--       9 reason: host server operator
-- GIVES ok replay stale idempotency_key_reused room_not_found room_closed not_host already_started
-- KEEPS every stake goes back whole; no stake stays held
local reason = ARGV[9]

local again = seen(receipt_key, fingerprint)
if again then return again end
if not open_room() or R.game ~= game then return refuse('room_not_found') end
if repeated() then return done() end
if R.vis == 'private' and uid ~= '' and not seat_of(uid) then return refuse('room_not_found') end
if R.status == 'FINISHED' or R.status == 'CANCELLED' then return refuse('room_closed') end
if uid ~= '' and uid ~= R.host then return refuse('not_host') end
if uid ~= '' and R.status ~= 'CREATED' then return refuse('already_started') end
if staked_without_purse() then return answer('stale') end

change()
cancel(reason)
save()
return done()
