-- save_read: reads the newest version of a save slot, another one when it is named, and the time.
-- INCLUDES  clock
-- FLAGS     no-writes
-- KEYS      1 save
-- ARGV      1 with_state: with the newest state, 1 or 0  2 other: other version, or ''
-- RETURNS   ok
-- INVARIANT nothing is written
with_state = with_state == '1'

local version = redis.call('HGET', save_key, 'ver') or '0'
local newest = redis.call('HMGET', save_key, version .. ':mark', with_state and version or 'none')
local old = other == '' and {} or redis.call('HMGET', save_key, other .. ':mark', other)
local _, now = read_clock()
return {'ok', now, version, newest[1] or '', newest[2] or '', old[1] or '', old[2] or ''}
