-- room_create: opens a room, seats its creator and takes the stake, or changes nothing.
-- USES  clock event money receipt room
-- KEYS  1 room 2 events 3 receipt 4 due 5 open 6 created 7 started 8 finished 9 cancelled 10 all 11 every 12 totals 13 ledger
--       14 code 15 next
--       then wallet, lines and events of each in purses …
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl 5 who 6 uid 7 game 8 purses
--       9 step 10 number 11 profile 12 code 13 set 14 doc (no set: only the receipt is asked for)
-- GIVES ok replay stale idempotency_key_reused insufficient_funds
-- KEEPS a code names one room; ids are unique over all homes
local code_key, next_key = KEYS[14], KEYS[15]
local step, number, profile = tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11]
local code, set, doc = ARGV[12], ARGV[13], ARGV[14]

local again = seen(receipt_key, fingerprint)
if again then return again end
if set == '' then return {'stale', nonce} end
if open_room() then return done() end -- sent again
lay(set)
if redis.call('EXISTS', code_key) == 1 then return {'stale', nonce} end
local poor = affords(uid)
if poor then return refuse(unpack(poor)) end

redis.call('SET', code_key, R.room)
found(whole(redis.call('INCR', next_key) * step + number), code, doc, profile, {})
save()
return done()
