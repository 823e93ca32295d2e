-- lib_receipt: finds and saves the receipt of a keyed request, kept beside its effect.
-- An empty fingerprint means that the request has no key; then nothing is kept. A receipt is one
-- text: the fingerprint and the reply, each part with '\31' behind it, which is in no name and in
-- no JSON.

-- find_receipt returns the reply to a request whose key was used before: {'replay', …the first
-- reply} or {'idempotency_key_reused'}; nil when the request is new. It writes, so that a WAIT
-- that follows covers the first request's writes too.
local function find_receipt(receipt, fingerprint)
  if fingerprint == '' then return nil end
  local kept = redis.call('GET', receipt)
  if not kept then return nil end
  redis.call('SET', receipt, kept, 'KEEPTTL')
  local reply = {}
  for part in string.gmatch(kept, '([^\31]*)\31') do reply[#reply + 1] = part end
  if reply[1] ~= fingerprint then return {'idempotency_key_reused'} end
  reply[1] = 'replay'
  return reply
end

-- save_receipt stores a reply (an array of texts) and returns it. Error codes that depend on
-- state are kept too: a late duplicate of a refused purchase must not succeed.
local function save_receipt(receipt, fingerprint, ttl_ms, reply)
  if fingerprint ~= '' then
    redis.call('SET', receipt, fingerprint .. '\31' .. table.concat(reply, '\31') .. '\31', 'PX', ttl_ms)
  end
  return reply
end
