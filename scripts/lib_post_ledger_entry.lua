-- lib_post_ledger_entry: appends one double entry to the ledger and moves the running totals with
-- it.
-- INCLUDES  clock hincrby_many
-- entry has token, reason, ref and postings, which look like 'w:7:-250;e:<room>:250' and sum to
-- zero; accounts (of minted, wallets, escrow, house) and deltas, by which their totals change. It
-- returns the entry's number and the new totals, {number, …accounts}.
local function post_ledger_entry(totals, ledger, entry)
  local token, accounts, deltas = entry.token, entry.accounts, entry.deltas
  local fields, increments = {'seq'}, {'1'}
  for i = 1, #accounts do fields[i + 1], increments[i + 1] = accounts[i] .. ':' .. token, deltas[i] end
  local after = hincrby_many(totals, fields, increments)
  redis.call('XADD', ledger, after[1] .. '-0', 'at', now_text, 'tok', token, 'why', entry.reason, 'ref', entry.ref,
    'post', entry.postings)
  return after
end
