-- lib_post_room_entry: posts a ledger entry of the room, see post_ledger_entry.
-- INCLUDES  post_ledger_entry room_params
local function post_room_entry(room, reason, postings, accounts, deltas)
  post_ledger_entry(totals_key, ledger_key, {token = room.token, reason = reason, ref = room.id, postings = postings,
    accounts = accounts, deltas = deltas})
end
