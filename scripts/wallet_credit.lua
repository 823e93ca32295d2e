-- wallet_credit: mints units into a player's wallet, or changes nothing.
-- INCLUDES  clock int_to_string format_time format_decimal is_at_least add_exact can_mint
--           hincrby_many emit_event apply_balance_change post_ledger_entry receipt read_token
-- KEYS      1 wallet  2 lines  3 events  4 totals  5 ledger  6 token  7 receipt
-- ARGV      1 publish command  2 nonce  3 fingerprint  4 receipt ttl in ms  5 user  6 token code
--           7 decimals that units count in ('' when no token is known)  8 units  9 reason  10 ref
-- RETURNS   ok stale replay token_not_found invalid_amount idempotency_key_reused
-- INVARIANT minted == wallets + escrow + house; a player credited has at most 2^53 - 1 units,
--           held ones included
local wallet_key, lines_key, events_key, totals_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ledger_key, token_key, receipt_key = KEYS[5], KEYS[6], KEYS[7]
local publish, nonce, fingerprint, receipt_ttl_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local user, code, decimals, units, reason, ref = ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]

local token = read_token(token_key)
local token_id, token_decimals = token[1], token[2]
if token_id and token_decimals ~= decimals then return {'stale'} end
local first_reply = find_receipt(receipt_key, fingerprint)
if first_reply then return first_reply end
if not token_id then return save_receipt(receipt_key, fingerprint, receipt_ttl_ms, {'token_not_found', nonce}) end
if not can_mint(wallet_key, totals_key, code, units) then
  return save_receipt(receipt_key, fingerprint, receipt_ttl_ms, {'invalid_amount', nonce})
end

post_ledger_entry(totals_key, ledger_key, {token = code, reason = reason, ref = ref,
  postings = 'm:-' .. units .. ';w:' .. user .. ':' .. units,
  accounts = {'minted', 'wallets'}, deltas = {units, units}})
local free, held = apply_balance_change(publish, nonce, {wallet = wallet_key, lines = lines_key, events = events_key},
  {token = code, decimals = decimals, free = units, held = '0', reason = reason, ref = ref})
return save_receipt(receipt_key, fingerprint, receipt_ttl_ms, {'ok', nonce, free, held, unpack(token)})
