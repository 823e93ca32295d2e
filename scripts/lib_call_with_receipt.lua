-- lib_call_with_receipt: how a script begins of which each call leaves a receipt.
-- INCLUDES  receipt
-- KEYS      1 receipt
-- ARGV      1 publish  2 nonce  3 fingerprint  4 ttl_ms: of the receipt
-- A call that was made before ends here, with its first reply.
local first = find_receipt(receipt_key, fingerprint)
if first then return first end

-- refuse returns a reply that changes nothing, and keeps it.
local function refuse(status, ...) return save_receipt(receipt_key, fingerprint, ttl_ms, {status, nonce, ...}) end
