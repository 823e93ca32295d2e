-- lib_room_params: names the keys and arguments that every room script has first. Its own come
-- after them.
-- KEYS      1 room  2 events  3 receipt  4 due  5 open  6 created  7 started  8 finished
--           9 cancelled  10 all (of the game)  11 every (of all games)  12 totals  13 ledger
-- ARGV      1 publish command  2 nonce  3 fingerprint  4 receipt ttl in ms  5 actor ('' for the
--           sweeper)  6 user ('' when the caller is no player)  7 game  8 ids of the users in
--           wallets, with commas
-- A free room moves no money: its totals and ledger are placeholders.
local room_key, events_key, receipt_key, due_key, open_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local status_keys = {CREATED = KEYS[6], STARTED = KEYS[7], FINISHED = KEYS[8], CANCELLED = KEYS[9]}
local all_key, every_key, totals_key, ledger_key = KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local publish, nonce, fingerprint, receipt_ttl_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local actor, user, game, wallet_ids = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
