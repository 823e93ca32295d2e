-- receipt: the outcome of a keyed request, kept beside its effect, so that twice is once.
-- gives seen(receipt, fingerprint), keep(receipt, fingerprint, ttl_ms, answer)
--
-- An empty fingerprint means that the request has no key; then nothing is kept. A receipt is one text: the fingerprint and the answer,
-- each part with '\31' behind it, which stands in no name and in no JSON.

-- seen answers what is to be returned when the key was used before: {'replay', …the first answer} or
-- {'idempotency_key_reused'}; nil when the request is new. It writes, so that a WAIT that follows
-- covers the first request's writes too.
local function seen(receipt, fingerprint)
  if fingerprint == '' then return nil end
  local kept = redis.call('GET', receipt)
  if not kept then return nil end
  redis.call('SET', receipt, kept, 'KEEPTTL')
  local answer = {}
  for part in string.gmatch(kept, '([^\31]*)\31') do answer[#answer + 1] = part end
  if answer[1] ~= fingerprint then return {'idempotency_key_reused'} end
  answer[1] = 'replay'
  return answer
end

-- keep stores the answer (an array of strings) and returns it. Refusals that depend on state are kept too: a late
-- duplicate of a refused purchase must not succeed.
local function keep(receipt, fingerprint, ttl_ms, answer)
  if fingerprint ~= '' then
    redis.call('SET', receipt, fingerprint .. '\31' .. table.concat(answer, '\31') .. '\31', 'PX', ttl_ms)
  end
  return answer
end
