-- lib_marks: the nonces of the last 32 calls without a key that changed a room, so that a resend
-- changes nothing. A call is resent within seconds, and a field for each caller would grow with
-- everybody who ever came. is_resend reports whether this very call was made before: its reply was
-- lost and the client library sent it again.
local function is_resend(marks, nonce)
  return marks and string.find(marks, nonce, 1, true) ~= nil
end

-- add_mark returns the marks with one more; each has 8 characters and a comma.
local function add_mark(marks, nonce)
  if not marks then return nonce .. ',' end
  if #marks >= 288 then marks = string.sub(marks, 10) end
  return marks .. nonce .. ','
end
