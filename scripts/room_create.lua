-- room_create: opens a room, seats its creator and takes the stake, or changes nothing.
-- INCLUDES clock amounts balance receipt event take_stake open_room
-- KEYS  1 room 2 events 3 code 4 next_id 5 due 6 all 7 created 8 started 9 open 10 every 11 player_rooms
--       then wallet, lines, ledger of a paid room; receipt of a keyed call
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl_ms 5 user 6 room_id 7 id_step 8 id_offset 9 code 10 settings 11 document 12 profile
-- RETURNS ok replay stale (the code is taken) idempotency_key_reused insufficient_funds
-- INVARIANT the pot is the sum of the stakes; a code names one room
local publish, nonce, fingerprint, ttl_ms, user, room_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local id_step, id_offset, code, settings, document, profile = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local code_key = KEYS[3]
local receipt_key = fingerprint ~= '' and KEYS[#KEYS]

if receipt_key then
  local first = find_receipt(receipt_key, fingerprint)
  if first then return first end
end
if redis.call('EXISTS', KEYS[1]) == 1 then return {'ok', nonce} end -- a resend: nobody else makes this id
if settings == '' or redis.call('EXISTS', code_key) == 1 then return {'stale', nonce} end
local entry, token, decimals = string.match(settings, PATTERN(room_settings: entry token decimals))
if entry ~= '0' then
  local free = read_balance(KEYS[12], token)
  if not has_at_least(free, entry) then
    return save_receipt(receipt_key, fingerprint, ttl_ms, {'insufficient_funds', nonce, free, entry, token, decimals})
  end
end

local now_ms, now = read_clock()
open_room(publish, nonce, now_ms, now, 1, room_id, user, id_step, id_offset, code, settings, document, profile, {})
return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce, room_id})
