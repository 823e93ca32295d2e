-- room_join: seats a player and takes the stake, or changes nothing.
-- INCLUDES clock amounts balance receipt event marks
local room_key, events_key, open_key, player_rooms_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local publish, nonce, fingerprint, ttl_ms, user, caller_game = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local room_id, may_start, new_profile, friend = ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local receipt_key = fingerprint ~= '' and KEYS[#KEYS]

if receipt_key then
  local first = find_receipt(receipt_key, fingerprint)
  if first then return first end
end
local function refuse(...) return save_receipt(receipt_key, fingerprint, ttl_ms, {...}) end

local seat_field = 's' .. user
local fields = redis.call('HMGET', room_key, 'settings', 'live', seat_field, 'b' .. user, 'marks')
local seat, marks = fields[3], fields[5]
if not fields[1] then return refuse('room_not_found', nonce) end
local entry, token, decimals, max_players, game, creator, visibility, friends_only, auto_start, match_ms = string.match(fields[1],
  PATTERN(room_settings: entry token decimals max_players game creator visibility friends_only auto_start match_ms))
local status, version, seq, _, pot, active, reserved, ready, host = string.match(fields[2],
  PATTERN(room_live: status version seq nonce pot active reserved ready host))
if game ~= caller_game then return refuse('room_not_found', nonce) end
if is_resend(marks, nonce) then return 'ok' end
local needs_friend = not seat and user ~= creator and (friends_only == '1' or visibility == 'private')
if needs_friend then
  if friend == '' then return {'stale', nonce} end
  if friend == '0' and visibility == 'private' then return refuse('room_not_found', nonce) end
end
if status ~= 'CREATED' and status ~= 'STARTED' then return refuse('room_closed', nonce) end
if seat and string.byte(seat) == 97 then return refuse('ok', nonce) end -- "active": seated already
if status ~= 'CREATED' then return refuse('already_started', nonce) end
if fields[4] then return refuse('banned', nonce) end
if needs_friend and friend == '0' then return refuse('friends_only', nonce) end
if seat then
  reserved = string.format('%d', reserved - 1)
elseif active + reserved >= tonumber(max_players) then
  return refuse('room_full', nonce)
end
active = string.format('%d', active + 1)
local starts = auto_start == '1' and active == max_players
if starts and may_start ~= '1' then return {'stale', nonce} end
local paid, money = entry ~= '0', may_start == '1' and 8 or 5
local wallet_key, free, held, line
if paid then
  wallet_key = KEYS[money]
  free, held, line = read_balance(wallet_key, token)
  if not has_at_least(free, entry) then return refuse('insufficient_funds', nonce, free, entry, token, decimals) end
end

local now_ms, now = read_clock()
local changed = now
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
if paid then
  free, held = subtract_amounts(free, entry), add_amounts(held, entry)
  pot = string.format('%d', pot + entry)
  redis.call('RPUSH', KEYS[money + 2],
    now .. '|' .. nonce .. '|' .. token .. '|entry|' .. room_id .. '|w' .. user .. ':-' .. entry .. ';e:' .. entry)
  write_balance(publish, wallet_key, KEYS[money + 1], nonce, now, token, free, held, string.format('%d', line + 1), 'user.balance',
    decimals .. '|-' .. entry .. '|' .. free .. '|' .. held .. '|entry|' .. room_id)
end
emit_event(publish, events_key, seq, nonce, now, 'room.joined',
  version .. '|' .. active .. '|' .. pot .. '|' .. decimals .. '|' .. new_profile)
redis.call('ZADD', player_rooms_key, '0', room_id)
if active == max_players and visibility == 'public' then redis.call('ZREM', open_key, room_id) end
if starts then
  local created_key, started_key, due_key = KEYS[5], KEYS[6], KEYS[7]
  status = 'STARTED'
  redis.call('ZREM', created_key, room_id)
  redis.call('ZADD', started_key, '0', room_id)
  redis.call('ZADD', due_key, string.format('%d', now_ms + match_ms), room_id)
  seq = string.format('%d', seq + 1)
  emit_event(publish, events_key, seq, nonce, now, 'room.started', version .. '|auto')
end
local new_live = PACK(room_live)
local new_seat = 'active|0|' .. now .. '|' .. entry .. '|' .. version .. '|' .. new_profile
if receipt_key then
  redis.call('HSET', room_key, 'live', new_live, seat_field, new_seat)
  save_receipt(receipt_key, fingerprint, ttl_ms, {'ok', nonce})
else
  redis.call('HSET', room_key, 'live', new_live, seat_field, new_seat, 'marks', add_mark(marks, nonce))
end
return 'ok'
