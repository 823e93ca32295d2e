-- save_read: reads the newest version of a save slot, another one when asked for, and the time.
-- USES  clock
-- KEYS  1 save
-- ARGV  1 whole: 1 with the newest state, 0 without  2 other version, or ''
-- GIVES ok
-- KEEPS nothing is written
local save = KEYS[1]
local with_state, other = ARGV[1] == '1', ARGV[2]

local version = redis.call('HGET', save, 'ver') or '0'
local now = redis.call('HMGET', save, version .. ':mark', with_state and version or 'none')
local old = other == '' and {} or redis.call('HMGET', save, other .. ':mark', other)
return {'ok', whole(now_ms), version, now[1] or '', now[2] or '', old[1] or '', old[2] or ''}
