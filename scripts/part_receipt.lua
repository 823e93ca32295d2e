-- receipt: the outcome of a keyed request, kept beside its effect, so that twice is once.
-- gives seen(receipt, fingerprint), keep(receipt, fingerprint, ttl_ms, answer)
--
-- An empty fingerprint means that the request has no key; then nothing is kept.

-- seen answers what is to be returned when the key was used before: {'replay', …the first answer} or
-- {'idempotency_key_reused'}; nil when the request is new. It writes, so that a WAIT that follows
-- covers the first request's writes too.
local function seen(receipt, fingerprint)
  if fingerprint == '' then return nil end
  local kept = redis.call('HMGET', receipt, 'fp', 'answer')
  if not kept[1] then return nil end
  redis.call('HINCRBY', receipt, 'replays', 1)
  if kept[1] ~= fingerprint then return {'idempotency_key_reused'} end
  local answer = cjson.decode(kept[2])
  table.insert(answer, 1, 'replay')
  return answer
end

-- keep stores the answer (an array of strings) and returns it. Refusals that depend on state are kept too: a late
-- duplicate of a refused purchase must not succeed.
local function keep(receipt, fingerprint, ttl_ms, answer)
  if fingerprint ~= '' then
    redis.call('HSET', receipt, 'fp', fingerprint, 'answer', cjson.encode(answer))
    redis.call('PEXPIRE', receipt, ttl_ms)
  end
  return answer
end
