-- room_join: seats a player and takes the stake, or changes nothing.
-- INCLUDES  clock amounts balance check_limits count_stake receipt call event marks save_change
--           take_stake start_room
-- KEYS      1 room  2 events  3 open  4 player_rooms  then created, started and due when the join
--           may start the room, wallet, lines and ledger of a paid room
-- ARGV      4 publish  5 user  6 caller_game: game  7 room_id  8 may_start: may the join start the
--           room, 1 or 0  9 profile  10 friend: is the user a friend of the creator, 1, 0, or ''
--           when it was not looked up  11 max_seats: most seats of a player, 0 for any number
-- LEDGER    if the player was not seated already
-- RETURNS   ok replay stale idempotency_key_reused room_not_found room_closed already_started
--           banned friends_only room_full limit_reached insufficient_funds
--           stake_limit open_rooms_limit loss_limit self_excluded
-- INVARIANT the pot is the sum of the stakes; live has the position of the last event; an index
--           names a room exactly while it is so
local seat_field = 's' .. user
local fields = receipt_key and redis.call('HMGET', room_key, 'settings', 'live', seat_field, 'b' .. user) or
  redis.call('HMGET', room_key, 'settings', 'live', seat_field, 'b' .. user, 'marks')
local settings, seat, marks = fields[1], fields[3], fields[5]
if not settings then return refuse('room_not_found', nonce) end
UNPACK(settings, room_settings: entry token decimals max_players game creator visibility friends_only auto_start)
UNPACK(fields[2], room_live without nonce changed)
if game ~= caller_game then return refuse('room_not_found', nonce) end
if is_resend(marks, nonce) then return 'ok' end
local needs_friend = not seat and user ~= creator and (friends_only == '1' or visibility == 'private')
if needs_friend then
  if friend == '' then return {'stale', nonce} end
  if friend == '0' and visibility == 'private' then return refuse('room_not_found', nonce) end
end
if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end
if seat and string.byte(seat) == 97 then return refuse('ok', nonce) end -- "active": seated already
if status ~= 'CREATED' then return refuse('already_started', nonce) end
if fields[4] then return refuse('banned', nonce) end
if needs_friend and friend == '0' then return refuse('friends_only', nonce) end
local taken = active + reserved + (seat and 0 or 1)
if taken > tonumber(max_players) then return refuse('room_full', nonce) end
if max_seats ~= '0' and not seat and redis.call('ZCARD', player_rooms_key) >= tonumber(max_seats) then
  return refuse('limit_reached', nonce, max_seats)
end
active = string.format('%d', active + 1)
local starts = auto_start == '1' and active == max_players -- then no seat is reserved any more
if starts and may_start ~= '1' then return {'stale', nonce} end
local paid, money, free, held, line, limited = entry ~= '0', may_start == '1' and NEXT_KEY + 3 or NEXT_KEY
if paid then
  free, held, line, limited = read_balance(KEYS[money], token)
  local over = limited ~= '' and check_limits(KEYS[money], nonce, token, decimals, entry, read_clock())
  if over then return refuse(unpack(over)) end
  if not has_at_least(free, entry) then return refuse('insufficient_funds', nonce, free, entry, token, decimals) end
end

local now_ms, now = read_clock()
local changed = now
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
if seat then reserved = string.format('%d', reserved - 1) end
if paid then
  pot = string.format('%d', pot + entry)
  take_stake(publish, KEYS[money], KEYS[money + 1], KEYS[money + 2], nonce, now, user, token, decimals, entry, room_id,
    free, held, line, limited)
end
emit_event(publish, events_key, seq, nonce, now, 'room.joined',
  version .. '|' .. active .. '|' .. pot .. '|' .. decimals .. '|' .. profile)
redis.call('ZADD', player_rooms_key, '0', room_id)
if starts then
  local created_key, started_key, due_key = unpack(KEYS, NEXT_KEY, NEXT_KEY + 2)
  UNPACK(settings, room_settings: match_ms)
  status, seq = 'STARTED', string.format('%d', seq + 1)
  start_room(publish, events_key, open_key, created_key, started_key, due_key, seq, nonce, now, version, 'auto',
    visibility, room_id, now_ms + match_ms)
  redis.call('HSET', room_key, 'started', now)
elseif visibility == 'public' and not seat and taken == tonumber(max_players) then
  redis.call('ZREM', open_key, room_id)
end
save_change(room_key, receipt_key, fingerprint, ttl_ms, nonce, marks, 'live', PACK(room_live), seat_field,
  'active|0|' .. now .. '|' .. entry .. '|' .. version .. '000|' .. profile)
return 'ok'
