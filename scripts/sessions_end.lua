-- sessions_end: records that sessions have ended, and drops the ends that concern no token any
-- more. A full store takes them too: what was ended must not go on.
-- FLAGS     allow-oom
-- KEYS      1 ended sessions
-- ARGV      1 subject: which sessions  2 time by which they had begun, in ms, '' for all  3 close
--           code of their sockets  4 time before which ends are dropped, in ms
--           5 time at which the end itself ends, in ms, '' for never
-- RETURNS   ok
-- INVARIANT every end is listed until no token of its sessions is valid; twice is harmless
local ended_key = KEYS[1]
local subject, began_by_ms, code, oldest_ms, until_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

redis.call('XADD', ended_key, '*', 'what', subject, 'at', began_by_ms, 'code', code, 'until', until_ms)
redis.call('XTRIM', ended_key, 'MINID', '~', oldest_ms)
return {'ok'}
