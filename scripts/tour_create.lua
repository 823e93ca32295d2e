-- tour_create: makes a tournament, or changes nothing.
-- INCLUDES  clock receipt event
-- KEYS      1 tour  2 events  3 tours  4 due  5 receipt
-- ARGV      1 publish  2 nonce  3 fingerprint  4 ttl_ms  5 tournament id  6 settings ('' to look up
--           the receipt only)  7 definition as JSON  8 actor who made it
--           9 most tournaments of the game that have not ended
-- RETURNS   ok replay stale limit_reached idempotency_key_reused
-- INVARIANT live has the position of the last event; a game has at most as many tournaments that
--           have not ended as it may when one is made
-- Stale means that there is no receipt. The tournament id follows ok.
local tour_key, events_key, tours_key, due_key, receipt_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local publish, nonce, fingerprint, ttl_ms, tour_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local settings, definition, actor, most = ARGV[6], ARGV[7], ARGV[8], ARGV[9]

local first = find_receipt(receipt_key, fingerprint)
if first then return first end
if settings == '' then return {'stale', nonce} end
if redis.call('ZCARD', due_key) >= tonumber(most) then
  return save_receipt(receipt_key, fingerprint, ttl_ms, {'limit_reached', nonce})
end

local _, now = read_clock()
local added = string.match(settings, PATTERN(tour_settings: added))
local status, version, seq, call, escrow, entrants, checked_in, round, open, cursor, roll, funded =
  'ANNOUNCED', '1', '1', nonce, '0', '0', '0', '0', '0', '0', '0', added == '0' and '1' or '0'
emit_event(publish, events_key, seq, nonce, now, 'tournament.opened', version .. '|' .. status)
redis.call('HSET', tour_key, 'settings', settings, 'definition', definition, 'live', PACK(tour_live), 'created', now,
  'actor', actor)
redis.call('ZADD', tours_key, tour_id, tour_id)
redis.call('ZADD', due_key, now, tour_id)
return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce, tour_id})
