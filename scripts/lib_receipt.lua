-- lib_receipt: the first reply to a request, stored beside its effect.
-- A receipt is "<fingerprint>\31<status>\31<nonce>\31<value>\31…". An empty fingerprint means that
-- no receipt is kept.

-- find_receipt returns the reply to a request that was made before: {'replay', status, nonce, …} or
-- {'idempotency_key_reused'}; nil when the request is new. It writes, so that a WAIT that follows
-- covers the first request's writes too.
local function find_receipt(receipt_key, fingerprint)
  local kept = redis.call('GET', receipt_key)
  if not kept then return nil end
  redis.call('SET', receipt_key, kept, 'KEEPTTL')
  local reply = {}
  for part in string.gmatch(kept, '([^\31]*)\31') do reply[#reply + 1] = part end
  if reply[1] ~= fingerprint then return {'idempotency_key_reused'} end
  reply[1] = 'replay'
  return reply
end

-- save_receipt stores a reply, an array of texts, and returns it. Errors that depend on state are
-- stored too: a late duplicate of a refused purchase must not succeed.
local function save_receipt(receipt_key, fingerprint, ttl_ms, reply)
  if fingerprint ~= '' then
    redis.call('SET', receipt_key, fingerprint .. '\31' .. table.concat(reply, '\31') .. '\31', 'PX', ttl_ms)
  end
  return reply
end

-- save_success is save_receipt for {'ok', nonce}, for a call with a key; it makes no table.
local function save_success(receipt_key, fingerprint, ttl_ms, nonce)
  redis.call('SET', receipt_key, fingerprint .. '\31ok\31' .. nonce .. '\31', 'PX', ttl_ms)
end
