-- sessions_end: records that sessions have ended, and drops the ends that concern no token any
-- more. A full store takes them too: what was ended must not go on.
-- FLAGS     allow-oom
-- KEYS      1 ended_sessions
-- ARGV      1 subject: which sessions  2 began_by_ms: time by which they had begun, in ms, '' for
--           all  3 code: close code of their sockets  4 oldest_ms: time before which ends are
--           dropped, in ms  5 until_ms: time at which the end itself ends, in ms, '' for never
-- RETURNS   ok
-- INVARIANT every end is listed until no token of its sessions is valid; twice is harmless
redis.call('XADD', ended_sessions_key, '*', 'what', subject, 'at', began_by_ms, 'code', code, 'until', until_ms)
redis.call('XTRIM', ended_sessions_key, 'MINID', '~', oldest_ms)
return {'ok'}
