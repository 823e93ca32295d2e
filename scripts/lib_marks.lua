-- lib_marks: the nonces of the last calls without a key that changed a room, so that a resend changes nothing.
-- is_resend reports whether this very call was made before: its reply was lost and the client library sent it again.
local function is_resend(marks, nonce)
  return marks and string.find(marks, nonce, 1, true) ~= nil
end

-- add_mark returns the marks with one more; the last 32 are kept, 8 characters and a comma each.
local function add_mark(marks, nonce)
  if not marks then return nonce .. ',' end
  if #marks >= 288 then marks = string.sub(marks, 10) end
  return marks .. nonce .. ','
end
