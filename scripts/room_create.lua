-- room_create: opens a room, seats its creator and takes the stake, or changes nothing.
-- INCLUDES  clock int_to_string format_time format_decimal is_at_least hincrby_many emit_event
--           apply_balance_change post_ledger_entry receipt room_params room_wallets room
--           build_reply room_reply begin_change list_active_seats remove_seat add_seat
--           check_funds move_money post_room_entry take_stake emit_room_event format_participants
--           start_room autostart_room init_room
-- KEYS      14 code  15 last room number of the shard
-- ARGV      9 step between room numbers  10 offset of the shard's room numbers  11 profile
--           12 code  13 settings ('' to look up the receipt only)  14 doc
-- RETURNS   ok replay stale idempotency_key_reused insufficient_funds
-- INVARIANT a code names one room; room numbers are unique over all shards
local code_key, number_key = KEYS[14], KEYS[15]
local step, offset, profile = tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11]
local code, settings, doc = ARGV[12], ARGV[13], ARGV[14]

local first_reply = find_receipt(receipt_key, fingerprint)
if first_reply then return first_reply end
if settings == '' then return {'stale', nonce} end
local existing = load_room(room_key, events_key)
if existing then return ok(existing) end -- a resend
local room = new_room(room_key, events_key, {set = settings})
if redis.call('EXISTS', code_key) == 1 then return {'stale', nonce} end
local shortage = check_funds(room, user)
if shortage then return refuse(unpack(shortage)) end

redis.call('SET', code_key, room.id)
local number = int_to_string(redis.call('INCR', number_key) * step + offset)
init_room(room, {number = number, code = code, doc = doc, profile = profile, reserved = {}})
save_room(room)
return ok(room)
