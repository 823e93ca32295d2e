-- probe_write: writes something that means nothing, for the WAIT that follows to cover.
-- FLAGS     allow-oom
-- KEYS      1 probe
-- ARGV      1 ttl_ms
-- CONFIRM   no: it is what a replica confirms
-- RETURNS   ok
redis.call('SET', probe_key, '1', 'PX', ttl_ms)
return 'ok'
