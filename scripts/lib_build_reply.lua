-- lib_build_reply: returns a reply of a status, the nonce and the whole room as one text.
-- INCLUDES  room_params
-- The nonce distinguishes a resend of this call from another call with its key. Having the room
-- in the reply makes a call one round trip. No value has a line break: all free text is in JSON.
local function build_reply(status, room)
  local fields = room.fields
  local list = {'set', fields.set, 'doc', fields.doc, 'created', fields.created, 'state', fields.state,
    'seq', fields.seq, 'seats', fields.seats}
  if room.status ~= 'CREATED' then
    for _, field in ipairs({'started', 'finished', 'reason', 'results', 'payouts', 'refunds', 'rake', 'rematch'}) do
      if fields[field] then
        list[#list + 1] = field
        list[#list + 1] = fields[field]
      end
    end
  end
  return {status, nonce, table.concat(list, '\n')}
end
