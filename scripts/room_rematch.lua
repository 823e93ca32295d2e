-- room_rematch: opens a room with the settings of one that ended, seats the caller and reserves
-- seats for the others; or changes nothing.
-- INCLUDES  clock int_to_string format_time format_decimal is_at_least hincrby_many emit_event
--           apply_balance_change post_ledger_entry receipt room_params room_wallets room
--           build_reply room_reply begin_change find_seat list_active_seats remove_seat add_seat
--           check_funds move_money post_room_entry take_stake emit_room_event format_participants
--           start_room autostart_room init_room
-- KEYS      14 new room  15 events of the new room  16 new code  17 last room number of the shard
-- ARGV      9 id of the new room  10 code  11 step between room numbers  12 offset of the shard's
--           room numbers  13 profile
-- RETURNS   ok replay stale idempotency_key_reused room_not_found not_participant not_started
--           already_started insufficient_funds
-- INVARIANT a room has one rematch, that of the first caller
local new_room_key, new_events_key, new_code_key, number_key = KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local new_id, code, step, offset, profile = ARGV[9], ARGV[10], tonumber(ARGV[11]), tonumber(ARGV[12]), ARGV[13]

local first_reply = find_receipt(receipt_key, fingerprint)
if first_reply then return first_reply end
local room = load_room(room_key, events_key)
if not room or room.game ~= game then return refuse('room_not_found') end
local seat = find_seat(room, user)
if room.visibility == 'private' and not seat then return refuse('room_not_found') end
if not seat or seat.state ~= 'active' then return refuse('not_participant') end
if room.status == 'CREATED' then return refuse('not_started') end
if room.status == 'STARTED' then return refuse('already_started') end
if room.fields.rematch then
  if room.fields.rematch ~= new_id then return build_reply('stale', room) end
  local rematch = load_room(new_room_key, new_events_key)
  if not rematch then return refuse('room_not_found') end
  return ok(rematch)
end
if redis.call('EXISTS', new_code_key) == 1 then return {'stale', nonce} end
local shortage = check_funds(room, user)
if shortage then return refuse(unpack(shortage)) end

begin_change(room)
set_field(room, 'rematch', new_id)
emit_room_event(room, 'room.rematch', '"newRoomId":"' .. new_id .. '","code":"' .. code .. '","by":' .. user)
save_room(room)

local others = {}
for _, other in ipairs(list_active_seats(room)) do
  if other.user ~= user then others[#others + 1] = other end
end
local settings = new_id .. string.match(room.fields.set, '^[^|]*(|.*|)') .. user
local rematch = new_room(new_room_key, new_events_key, {set = settings})
local doc = string.match(room.fields.doc, '^.-\t.-\t.-\t(.*)$') -- without number, code and profile
local number = int_to_string(redis.call('INCR', number_key) * step + offset)
redis.call('SET', new_code_key, new_id)
init_room(rematch, {number = number, code = code, doc = doc, profile = profile, reserved = others})
save_room(rematch)
return ok(rematch)
