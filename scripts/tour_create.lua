-- tour_create: makes a tournament, or changes nothing.
-- INCLUDES  clock receipt call_with_receipt event
-- KEYS      2 tour  3 events  4 tours  5 due
-- ARGV      5 tour_id: tournament id  6 settings: '' to look up the receipt only  7 definition: as
--           JSON  8 actor: actor who made it  9 most: most tournaments of the game that have not
--           ended
-- RETURNS   ok replay stale limit_reached idempotency_key_reused
-- INVARIANT live has the position of the last event; a game has at most as many tournaments that
--           have not ended as it may when one is made
-- Stale means that there is no receipt. The tournament id follows ok.
if settings == '' then return {'stale', nonce} end
if redis.call('ZCARD', due_key) >= tonumber(most) then
  return refuse('limit_reached')
end

local _, now = read_clock()
UNPACK(settings, tour_settings: added)
local status, version, seq, call, escrow, entrants, checked_in, round, open, cursor, roll, funded =
  'ANNOUNCED', '1', '1', nonce, '0', '0', '0', '0', '0', '0', '0', added == '0' and '1' or '0'
emit_event(publish, events_key, seq, nonce, now, 'tournament.opened', version .. '|' .. status)
redis.call('HSET', tour_key, 'settings', settings, 'definition', definition, 'live', PACK(tour_live), 'created', now,
  'actor', actor)
redis.call('ZADD', tours_key, tour_id, tour_id)
redis.call('ZADD', due_key, now, tour_id)
return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce, tour_id})
