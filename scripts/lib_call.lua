-- lib_call: how a script begins that is called with or without a key.
-- INCLUDES  receipt
-- KEYS      then the receipt of a call with a key, at the end
-- ARGV      1 nonce  2 fingerprint: '' for a call without a key  3 ttl_ms: of the receipt
-- A call that was made before ends here, with its first reply.
local receipt_key = fingerprint ~= '' and KEYS[#KEYS]
if receipt_key then
  local first = find_receipt(receipt_key, fingerprint)
  if first then return first end
end

-- refuse returns a reply that changes nothing, and keeps it for a call with a key.
local function refuse(...) return save_receipt(receipt_key, fingerprint, ttl_ms, {...}) end
