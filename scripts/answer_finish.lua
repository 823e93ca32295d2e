-- answer_finish: keeps the answer of a run, unless another run has taken its place: then it changes nothing.
-- KEYS  1 answer
-- ARGV  1 fingerprint  2 owner  3 sealed answer  4 kept ms
-- GIVES ok stale
local record = KEYS[1]
local fingerprint, owner, sealed, kept_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local holder = redis.call('HGET', record, 'owner')
if holder and holder ~= owner then return {'stale'} end
redis.call('HSET', record, 'fp', fingerprint, 'owner', owner, 'answer', sealed)
redis.call('PEXPIRE', record, kept_ms)
return {'ok'}
