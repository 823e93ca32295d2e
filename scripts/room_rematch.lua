-- room_rematch: opens a room with the settings of one that ended, seats the caller and holds seats for the others; or changes
-- nothing.
-- INCLUDES clock amounts balance receipt event seats take_stake open_room
-- KEYS  1 room 2 events, then the keys of the new room as open_room wants them, receipt of a keyed call
-- ARGV  1 publish 2 nonce 3 fingerprint 4 ttl_ms 5 user 6 game 7 room_id 8 new_room_id 9 id_step 10 id_offset 11 code 12 profile
-- RETURNS ok replay stale idempotency_key_reused room_not_found not_participant not_started already_started insufficient_funds
-- INVARIANT a room has one rematch, whoever asks first
local room_key, events_key, new_code_key = KEYS[1], KEYS[2], KEYS[5]
local publish, nonce, fingerprint, ttl_ms, user, caller_game = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local room_id, new_room_id, id_step, id_offset, code, profile = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local receipt_key = fingerprint ~= '' and KEYS[#KEYS]

if receipt_key then
  local first = find_receipt(receipt_key, fingerprint)
  if first then return first end
end
local function refuse(...) return save_receipt(receipt_key, fingerprint, ttl_ms, {...}) end

local seat_field = 's' .. user
local fields = redis.call('HMGET', room_key, 'settings', 'live', seat_field, 'rematch', 'document')
local settings, seat, rematch = fields[1], fields[3], fields[4]
if not settings then return refuse('room_not_found', nonce) end
local entry, token, decimals, game, creator, visibility =
  string.match(settings, PATTERN(room_settings: entry token decimals game creator visibility))
local status, version, seq, _, pot, active, reserved, ready, host, changed =
  string.match(fields[2], PATTERN(room_live: status version seq nonce pot active reserved ready host changed))
if game ~= caller_game then return refuse('room_not_found', nonce) end
if visibility == 'private' and not seat then return refuse('room_not_found', nonce) end
if not seat or string.byte(seat) ~= 97 then return refuse('not_participant', nonce) end -- not "active"
if status == 'CREATED' then return refuse('not_started', nonce) end
if status == 'STARTED' then return refuse('already_started', nonce) end
if rematch then return refuse('ok', nonce, rematch) end
if redis.call('EXISTS', new_code_key) == 1 then return {'stale', nonce} end
if entry ~= '0' then
  local free = read_balance(KEYS[14], token)
  if not has_at_least(free, entry) then return refuse('insufficient_funds', nonce, free, entry, token, decimals) end
end

local now_ms, now = read_clock()
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
emit_event(publish, events_key, seq, nonce, now, 'room.rematch', version .. '|' .. user .. '|' .. new_room_id .. '|' .. code)
redis.call('HSET', room_key, 'live', PACK(room_live), 'rematch', new_room_id)
local held_for = {}
for _, other in ipairs(read_seats(room_key)) do
  if other.state == 'active' and other.user ~= user then
    held_for[#held_for + 1] = other.user
    held_for[#held_for + 1] = other.profile
  end
end
local new_settings = REPLACE(room_settings: creator in settings by user)
open_room(publish, nonce, now_ms, now, 3, new_room_id, user, id_step, id_offset, code, new_settings, fields[5], profile, held_for)
return save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce, new_room_id})
