-- room_finish: ends the game with a result and pays out the pot, or changes nothing.
-- USES  clock event money receipt room
-- KEYS  1 room 2 events 3 receipt 4 due 5 open 6 created 7 started 8 finished 9 cancelled 10 all 11 every 12 totals 13 ledger
--       then wallet, lines and events of each in purses …
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl 5 who 6 uid 7 game 8 purses
--       9 results 10 plan 11 rake 12 ver (the version for which they were computed)
-- GIVES ok replay stale idempotency_key_reused room_not_found room_closed result_conflict not_started
-- KEEPS payouts and rake are the pot exactly; no stake stays held
local results, plan, rake, ver = ARGV[9], ARGV[10], ARGV[11], ARGV[12]

local again = seen(receipt_key, fingerprint)
if again then return again end
if not open_room() or R.game ~= game then return refuse('room_not_found') end
if R.status == 'FINISHED' then
  if R.results ~= results then return refuse('result_conflict') end
  return done() -- the same result again
end
if R.status == 'CANCELLED' then return refuse('room_closed') end
if R.status ~= 'STARTED' then return refuse('not_started') end
if ver ~= R.ver or staked_without_purse() or not balanced(plan, rake) then return answer('stale') end

change()
settle(results, plan, rake)
save()
return done()
