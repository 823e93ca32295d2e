-- room_rematch: opens a room with the settings of one that ended, seats the caller and holds seats for the others; or changes nothing.
-- USES  clock event money receipt room
-- KEYS  1 room 2 events 3 receipt 4 due 5 open 6 created 7 started 8 finished 9 cancelled 10 all 11 every 12 totals 13 ledger
--       14 new_room 15 new_events 16 new_code 17 next
--       then wallet, lines and events of each in purses …
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl 5 who 6 uid 7 game 8 purses
--       9 new_id 10 code 11 step 12 number 13 profile
-- GIVES ok replay stale idempotency_key_reused room_not_found not_participant not_started already_started insufficient_funds
-- KEEPS a room has one rematch, whoever asks first
local new_room_key, new_stream_key, new_code_key, next_key = KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local new_id, code, step, number, profile = ARGV[9], ARGV[10], tonumber(ARGV[11]), tonumber(ARGV[12]), ARGV[13]

local again = seen(receipt_key, fingerprint)
if again then return again end
if not open_room() or R.game ~= game then return refuse('room_not_found') end
local seat = seat_of(uid)
if R.vis == 'private' and not seat then return refuse('room_not_found') end
if not seat or seat.state ~= 'active' then return refuse('not_participant') end
if R.status == 'CREATED' then return refuse('not_started') end
if R.status == 'STARTED' then return refuse('already_started') end
if R.rematch then
  if R.rematch ~= new_id then return answer('stale') end
  room_key = new_room_key
  if not open_room() then return refuse('room_not_found') end
  return done()
end
if redis.call('EXISTS', new_code_key) == 1 then return {'stale', nonce} end
local poor = affords(uid)
if poor then return refuse(unpack(poor)) end

change()
put('rematch', new_id)
tell('room.rematch', '"newRoomId":"' .. new_id .. '","code":"' .. code .. '","by":' .. uid)
save()

local old, others = R, {}
for _, s in ipairs(active()) do
  if s.uid ~= uid then others[#others + 1] = s end
end
room_key, stream_key = new_room_key, new_stream_key
open_room()
lay(new_id .. string.match(old.set, '^[^|]*(|.*|)') .. uid)
redis.call('SET', new_code_key, new_id)
found(whole(redis.call('INCR', next_key) * step + number), code, string.match(old.doc, '^.-\t.-\t.-\t(.*)$'), profile, others)
save()
return done()
