-- lib_room_reply: saves the reply of a room script under the caller's key and returns it.
-- INCLUDES  receipt room_params build_reply

-- refuse replies with an error code and its values.
local function refuse(code, ...)
  return save_receipt(receipt_key, fingerprint, receipt_ttl_ms, {code, nonce, ...})
end

-- ok replies with the room as it is now.
local function ok(room) return save_receipt(receipt_key, fingerprint, receipt_ttl_ms, build_reply('ok', room)) end
