package main

// The tests that must notice a mutant.
var (
	order    = killer{"./tests/chaos", "TestEveryOrder"}
	crash    = killer{"./tests/chaos", "TestARequestThatDies"}
	linear   = killer{"./tests/chaos", "TestHistories"}
	races    = killer{"./tests/chaos", "TestRaces|TestTheSameResult"}
	payouts  = killer{"./scripts", "TestRoomsConserveMoney|TestAResult|TestTheLargestPot|TestAmountsOfAnySize"}
	scripted = killer{"./scripts", "TestExamples|TestTheSweep|TestAnOlderLeader|TestFoldingTwice|TestTheLast32Calls"}
	spoiled  = killer{"./scripts", "TestAKeyThatSetReplaced"}
	model    = killer{"./rooms", "TestRoomsAgreeWithTheModel|TestEndedRooms"}
	turns    = killer{"./scripts", "TestExamples|TestATurnThatIsOver|TestAForfeitAtADeadline|TestTheEventsOfAShared"}
	purchase = killer{"./internal/money/assets", "TestMoneyScriptsAgreeWithTheModel$"}
	stories  = killer{"./rooms", "TestStoriesOfConsensus"}
	disputes = killer{"./rooms", "TestADisputeIs"}
	limits   = killer{"./scripts", "TestExamples|TestALooserLimit|TestLosses"}
	ownLimit = killer{"./rooms", "TestRoomsAgreeWithTheModel|TestJoinsThatRace|TestAnExcludedPlayer"}
	agreed   = killer{"./scripts", "TestAResultOfPlayersOrStaff"}
	sales    = killer{"./scripts", "TestAPurchaseKeeps"}
	outbox   = killer{"./scripts", "TestExamples|TestARoomThatEndsLeaves|TestARoomDoesNotEnd|TestAnEntry|TestDeadLetters"}
	matches  = killer{"./scripts", "TestExamples|TestAMatch"}
	feeding  = killer{"./rooms", "TestRoomsAgreeWithTheModel|TestEveryEnd"}
	counted  = killer{"./competition/leaderboards", "TestARoomCountsOnce"}
	first100 = killer{"./scripts", "TestTheVersionOfTheFirstHundred"}
	ordered  = killer{"./competition/leaderboards", "TestMembersAre|TestTheTimeOfAnEntry"}
	twice    = killer{"./internal/money/prizes", "TestAPlayerWithTwoLines"}
	winners  = killer{
		"./internal/money/prizes", "TestPrizesAgreeWithTheModel$|TestAPoorHouse|TestWhatAServer|TestASpoiled|TestAVoided",
	}
	lateJoins = killer{"./scripts", "TestWhoComesBack|TestWhoJoinsLate|TestNobodyChecksIn|TestWhoHasLeft"}
	tours     = killer{"./competition/tournaments", "TestAFee|TestWho|TestPairings|TestAResult|TestATournament|TestTwo"}
)

// mutants are the defects of scripts. Each breaks one line of a script that moves money.
var mutants = []mutant{
	// Receipts: what is sent twice happens once.
	{
		"what leaves a receipt is made again when it is sent again", "lib_call_with_receipt",
		"if first then return first end", "", crash,
	},
	{
		"a grant is given at every sign-in", "wallet_grant",
		"if redis.call('HEXISTS', wallet_key, ':grant') == 1 then return {'ok', nonce} end", "", crash,
	},
	{
		"no receipt is kept", "lib_receipt",
		"  if fingerprint ~= '' then\n    redis.call('SET', receipt_key",
		"  if false then\n    redis.call('SET', receipt_key", crash,
	},
	{
		"no receipt of a change of a room is kept", "lib_receipt",
		"  redis.call('SET', receipt_key, fingerprint .. '\\31ok\\31' .. nonce .. '\\31', 'PX', ttl_ms)", "", order,
	},
	{
		"another request under the same key gets the first reply", "lib_receipt",
		"if reply[1] ~= fingerprint then return {'idempotency_key_reused'} end", "", purchase,
	},
	{
		"a call with a key that is sent again is made again", "lib_call",
		"  if first then return first end", "", crash,
	},
	{
		"a room that was created without a key is not recognised when that is sent again", "lib_open_room",
		"if redis.call('EXISTS', room_key) == 1 then return {'ok', nonce, room_id} end", "", crash,
	},
	{
		"a leave without a key that is sent again is refused", "room_leave",
		"if is_resend(marks, nonce) then return {'ok', nonce} end", "", model,
	},
	{
		"a forfeit is taken for a stake that was given back", "room_leave",
		"if paid and (is_won or is_open and stake ~= '0' or is_empty and pot ~= '0') then return 'ok' end",
		"if paid then return 'ok' end",
		killer{"./scripts", "TestWhatIsSaidOfTheLedgerIsTrue"},
	},
	{
		"a join without a key that is sent again, after a kick, takes a second stake", "room_join",
		"if is_resend(marks, nonce) then return 'ok' end", "",
		killer{"./tests/chaos", "TestALateResendOfAJoin"},
	},
	{
		"marks are not written", "lib_save_change",
		"'marks', add_mark(marks, nonce), ...", "'marks', marks or '', ...", scripted,
	},

	// Balances.
	{
		"what is free and what is held are swapped", "lib_balance",
		"token, free .. '|' .. held .. limited, ':seq', seq", "token, held .. '|' .. free .. limited, ':seq', seq", crash,
	},
	{
		"the newest line has another balance than the wallet", "lib_stake",
		"'|' .. paid .. '|' .. free .. '|' .. held .. '|' .. reason",
		"'|' .. paid .. '|' .. held .. '|' .. free .. '|' .. reason",
		order,
	},
	{
		"whoever has exactly the price cannot pay", "lib_amounts",
		"return balance >= amount", "return balance > amount", purchase,
	},
	{
		"amounts of different lengths are compared as texts", "lib_amounts",
		"if #balance ~= #amount then return #balance > #amount end", "", order,
	},
	{
		"a large sum loses its carry", "lib_amounts",
		"if low >= 1000000000 then high, low = high + 1, low - 1000000000 end",
		"if low >= 1000000000 then low = low - 1000000000 end", payouts,
	},
	{
		"a large difference loses its borrow", "lib_amounts",
		"if low < 0 then high, low = high - 1, low + 1000000000 end", "if low < 0 then low = low + 1000000000 end", payouts,
	},
	{
		"large amounts are added as floats", "lib_amounts",
		"if #a <= 15 and #b <= 15 then return", "if true then return", payouts,
	},

	// Minting.
	{
		"what is minted is not counted", "lib_mint",
		"  redis.call('HSET', totals_key, total, minted)\n", "", crash,
	},
	{
		"what is burnt is not counted", "wallet_debit",
		"redis.call('HINCRBY', totals_key, 'minted:' .. token, delta)\n", "", crash,
	},
	{
		"a debit may exceed the balance", "wallet_debit",
		"if not has_at_least(free, units) then", "if false then", purchase,
	},
	{
		"a wallet may exceed its bound", "lib_mint",
		"not has_at_least('9007199254740991', held == '0' and free or add_amounts(free, held))", "false", purchase,
	},

	// Stakes.
	{
		"a stake is not held", "lib_take_stake",
		"subtract_amounts(free, entry), add_amounts(held, entry)", "subtract_amounts(free, entry), held", crash,
	},
	{
		"a stake has no ledger entry", "lib_take_stake",
		"'|w' .. user .. ':-' .. entry .. ';e:' .. entry)", "'|')", crash,
	},
	{
		"a stake costs nothing", "lib_take_stake",
		"subtract_amounts(free, entry), add_amounts(held, entry)", "free, add_amounts(held, entry)", crash,
	},
	{
		"a stake is released and stays held", "lib_stake",
		"held = subtract_amounts(held, stake)", "", crash,
	},
	{
		"a player may join without the entry", "room_join",
		"if not has_at_least(free, entry) then", "if false then", linear,
	},
	{
		"a player who is seated pays again", "room_join",
		"if seat and string.byte(seat) == 97 then return refuse('ok', nonce) end -- \"active\": seated already", "", crash,
	},
	{
		"one more than the seats may join", "room_join",
		"if taken > tonumber(max_players) then", "if taken > tonumber(max_players) + 1 then", linear,
	},
	{
		"a started room can be joined", "room_join",
		"if status ~= 'CREATED' then return refuse('already_started', nonce) end", "", linear,
	},
	{
		"an ended room can be joined", "room_join",
		"if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end\n" +
			"if seat and string.byte(seat) == 97 then return refuse('ok', nonce) end -- \"active\": seated already\n" +
			"if status ~= 'CREATED' then return refuse('already_started', nonce) end\n", "", order,
	},
	{
		"a room is opened without the entry", "lib_open_room",
		"if not has_at_least(free, entry) then", "if false then", model,
	},

	// Refunds.
	{
		"who leaves before the start gets no ledger entry", "lib_remove_seat",
		"'|e:-' .. stake .. ';w' .. user .. ':' .. stake)", "'|')", crash,
	},
	{
		"who leaves before the start leaves the stake in the pot", "lib_remove_seat",
		"return string.format('%d', pot - stake)", "return pot", crash,
	},
	{
		"who leaves after the start gets the stake back", "room_leave",
		"\nif is_open then\n  pot = remove_seat", "\nif true then\n  pot = remove_seat", crash,
	},
	{
		"an ended room can be left", "room_leave",
		"if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end", "", linear,
	},
	{
		"a forfeited seat can be left again", "room_leave",
		"if not state or state == 'forfeited' then", "if not state then", stories,
	},
	{
		"forfeited stakes are not refunded", "lib_refund",
		"if stake ~= '0' then\n      release_stake",
		"if stake ~= '0' and seat.state == 'active' then\n      release_stake", crash,
	},
	{
		"a cancelled room is not in the ledger", "lib_refund",
		"if #postings > 0 then", "if false then", crash,
	},
	{
		"an ended room can be cancelled", "room_cancel",
		"if status == 'FINISHED' or status == 'CANCELLED' then return refuse('room_closed', nonce) end", "", linear,
	},
	{
		"a cancel without the keys of all players goes on", "room_cancel",
		"if not has_all_players(seats, keys_of) then return {'stale', nonce} end", "", scripted,
	},
	{
		"an ended room can be swept again and again", "room_sweep",
		"elseif reason then\n  local status_key", "elseif true then\n  local status_key",
		scripted,
	},
	{
		"the sweep ends rooms before their time", "room_sweep",
		"now_ms >= deadline\n", "true\n",
		scripted,
	},
	{
		"a leader of the sweep that has a successor goes on", "room_sweep",
		"if newest and tonumber(fence) < tonumber(newest) then return {'stale', 'fence'} end", "",
		scripted,
	},

	// Payouts.
	{
		"a finished room can be finished again", "room_finish",
		"if status == 'FINISHED' then", "if false then", crash,
	},
	{
		"a cancelled room can be finished", "room_finish",
		"if status == 'CANCELLED' then return refuse('room_closed', nonce) end\n" +
			"if status == 'DISPUTED' then return refuse('room_disputed', nonce) end\n" +
			"if status ~= 'STARTED' then return refuse('not_started', nonce) end\n", "", linear,
	},
	{
		"a result that was computed for an earlier room is paid", "room_finish",
		"if version ~= computed_for then return {'stale', nonce} end -- so the keys are those of all seats", "",
		scripted,
	},
	{
		"the same result is a conflict for a node that read the room before its start", "room_finish",
		"    if version ~= computed_for then return {'stale', nonce} end -- the caller read it before its end\n", "", races,
	},
	{
		"payouts need not be the pot", "lib_payout",
		"if sum ~= limit or count ~= 2 * seats or seats * entry ~= limit then return nil end", "", payouts,
	},
	{
		"a player may be paid twice", "lib_payout",
		"or named[user] then", "then", payouts,
	},
	{
		"the rake has no ledger entry", "lib_payout",
		"if rake ~= '0' then postings", "if false then postings", crash,
	},
	{
		"a winner's stake stays held", "lib_payout",
		"subtract_amounts(held, entry)", "(units == '0' and subtract_amounts(held, entry) or held)", crash,
	},
	{
		"a finish that fails keeps what it has appended", "lib_finish_room",
		"    for i = 1, appended do redis.call('RPOP', lists[i]) end\n", "", spoiled,
	},
	{
		"a finish that fails takes the room off the players' lists", "lib_finish_room",
		"    for i = first, left, step do redis.call('ZADD', KEYS[i], '0', room_id) end\n", "", spoiled,
	},
	{
		"a finish that fails takes the room off the started ones", "lib_finish_room",
		"      redis.pcall('ZADD', status_key, '0', room_id) -- one of these may be what failed\n", "", spoiled,
	},
	{
		"a finish that fails leaves the room among the finished ones", "lib_finish_room",
		"      redis.pcall('ZREM', finished_key, room_id)\n", "", spoiled,
	},
	{
		"a rematch opens a room each time", "room_rematch",
		"if rematch then return refuse('ok', nonce, rematch) end", "", crash,
	},

	// Shared state and turns.
	{
		"a state is overwritten by one who has not read it", "room_state_set",
		"if state_version ~= read_version then", "if false then", turns,
	},
	{
		"a name of the host is any player's", "room_state_set",
		"if host_only == '1' and user ~= host then", "if false then", turns,
	},
	{
		"the size of what is replaced is counted twice", "room_state_set",
		"bytes = bytes + #ARGV[i + 1] - had", "bytes = bytes + #ARGV[i + 1]", turns,
	},
	{
		"a seat is forfeited before the deadline", "room_leave",
		"or now_ms < tonumber(over)) then", ") then", turns,
	},
	{
		"a turn is skipped before its deadline", "room_turn_skip",
		"if now_ms < tonumber(deadline) then", "if false then", turns,
	},

	// Purchases.
	{
		"more is sold than there is", "asset_purchase",
		"if stock ~= '' and not has_at_least(stock, quantity) then", "if false then", linear,
	},
	{
		"a player may own more than the limit", "asset_purchase",
		"if limit ~= '' and had + quantity > tonumber(limit) then", "if false then", sales,
	},
	{
		"a purchase may exceed the balance", "asset_purchase",
		"if not has_at_least(free, total) then", "if false then", linear,
	},
	{
		"the stock does not shrink", "asset_purchase",
		"if stock ~= '' then stock = string.format('%d', stock - quantity) end", "", linear,
	},
	{
		"what is bought is not owned", "asset_purchase",
		"redis.call('HSET', inventory_key, asset_id, owned)\n", "", crash,
	},
	{
		"the house does not get the price", "asset_purchase",
		"';h:' .. total", "''", crash,
	},

	// Prizes.
	{
		"the house promises more than it has", "prize_fund",
		"if not has_at_least(house, units) then return 'insufficient_funds' end", "", winners,
	},
	{
		"what the house has promised is there to promise again", "lib_house",
		"else went = add_amounts(went, units) end", "end", winners,
	},
	{
		"a source is funded twice", "prize_fund",
		"if stored[1] then return {'ok', '1'} end", "", winners,
	},
	{
		"a season that follows one ended early is funded too", "prize_fund",
		"if board ~= '' and until_ms ~= '' then redis.call('HSET', prize_budgets_key, board, until_ms) end", "", scripted,
	},
	{
		"the budget of a leaderboard is not asked", "prize_fund",
		"return {'stale', 'budget'}", "spent_until = nil", scripted,
	},
	{
		"a prize is no payout for the limits of a player", "prize_pay",
		"if limits[i] ~= '' and won_units[i] ~= '0' then", "if false then",
		killer{"./internal/money/prizes", "TestPrizesOfALeaderboardCount"},
	},
	{
		"a source that was voided is funded again", "prize_fund",
		"if stored[3] == 'VOID' or stored[3] == 'PAID' then return {'ok', '0'} end", "", winners,
	},
	{
		"what a server mints for prizes does not count against its day", "prize_fund",
		"if mints_of_day then redis.call('HSET', mints_key, token, mints_of_day) end", "", winners,
	},
	{
		"a server mints more in a day than it may", "lib_day_mints",
		"return has_at_least(limit, of_day) and day .. '|' .. of_day or nil", "return day .. '|' .. of_day", winners,
	},
	{
		"what is minted for prizes is not counted", "prize_fund",
		"if minted then redis.call('HSET', totals_key, total, minted) end", "", winners,
	},
	{
		"a plan pays more than its pool", "prize_plan",
		"if not has_at_least(pool, planned) then return 'invalid_amount' end", "", scripted,
	},
	{
		"a plan has lines of two leaders", "prize_plan",
		"local is_other = stored[2] ~= digest", "local is_other = not stored[2]", winners,
	},
	{
		"a plan that is whole is replaced", "prize_plan",
		"if stored[1] then return 'ok' end", "", winners,
	},
	{
		"a plan has lines missing", "prize_plan",
		"if length ~= before then return 'stale' end", "", scripted,
	},
	{
		"a line is paid from wherever the caller says", "prize_pay",
		"if state ~= 'PLANNED' or cursor ~= next_line then return 'stale' end",
		"if state ~= 'PLANNED' then return 'stale' end", scripted,
	},
	{
		"lines that are paid stay to be paid", "prize_pay",
		"'next', string.format('%d', next_line), 'paid'", "'next', cursor, 'paid'", winners,
	},
	{
		"the prize of one player goes to another", "prize_pay",
		"if table.concat(lines, ',') ~= given_lines then return 'stale' end", "", scripted,
	},
	{
		"a plan that was spoiled pays more than its pool", "prize_pay",
		"if not has_at_least(pool, paid) then return 'stale' end", "", winners,
	},
	{
		"what is left of a pool stays in its account", "prize_pay",
		"of_house = add_amounts(of_house, left)", "of_house = of_house", winners,
	},
	{
		"what is left of a minted pool stays minted", "prize_pay",
		"if burnt then redis.call('HSET', totals_key, 'minted:' .. token, burnt) end", "", winners,
	},
	{
		"the second line of a player forgets the first", "prize_pay",
		"    of_token[user], seqs[user] = count, seq\n", "    seqs[user] = seq\n", twice,
	},
	{
		"a key that SET spoiled stops a payment in its middle", "prize_pay",
		"  for i = 1, appended do redis.call('RPOP', lists[i]) end\n", "", spoiled,
	},
	{
		"a source is voided while it is paid", "prize_void",
		"or (stored[2] or '0') ~= '0' or pool", "or pool", scripted,
	},
	{
		"the fees of players are voided", "prize_void",
		" or pool ~= (stored[4] or '0') then", " then", scripted,
	},
	{
		"a source is voided twice", "prize_void",
		"if stored[1] == 'VOID' then return {'ok', nonce} end", "", winners,
	},

	// The books.
	{
		"a page of the ledger is folded twice", "ledger_fold",
		"if (redis.call('HGET', totals_key, 'folded') or '0') ~= before then return {'stale'} end", "", crash,
	},
	{
		"a leader of the fold that has a successor goes on", "ledger_fold",
		"if fence ~= '' and newest and tonumber(fence) < tonumber(newest) then return {'stale'} end", "",
		scripted,
	},

	{
		"what was read in another store is folded", "ledger_fold",
		"if redis.call('LINDEX', ledger_key, after - base - 1) ~= last_text then return {'stale'} end", "", scripted,
	},

	// Results by consensus, and disputes.
	{
		"a player may report twice, with two results", "room_report",
		"if status == 'FINISHED' or fields[4] then", "if status == 'FINISHED' then", stories,
	},
	{
		"a room ends before all have reported", "room_report",
		"if not is_compared or effect == 'add' and is_last or effect == 'agree' and not is_last then",
		"if not is_compared or effect == 'add' and is_last then", scripted,
	},
	{
		"a report that was compared with no other one counts", "room_report",
		"if not is_compared or effect", "if effect", scripted,
	},
	{
		"what players agree on need not pay the pot", "room_report",
		"if paid and not payouts then", "if false then", agreed,
	},
	{
		"a contradiction leaves the pot open to the next result", "room_report",
		"status, seq = 'DISPUTED', string.format", "seq = string.format", stories,
	},
	{
		"a dispute is refunded before its time", "room_sweep",
		"deadline, reason = disputed + (fields[8] or dispute_ms),", "deadline, reason = tonumber(disputed),", disputes,
	},
	{
		"a forfeited player may report", "room_report",
		"if not seat or string.byte(seat) ~= 97 then", "if not seat then", scripted,
	},
	{
		"a dispute is decided twice", "room_resolve",
		"if status ~= 'DISPUTED' then\n", "if false then\n", stories,
	},
	{
		"what the operator decides need not pay the pot", "room_resolve",
		"if paid and outcome == 'finish' and not payouts then", "if false then", agreed,
	},
	{
		"a decision that was computed for an earlier room is paid", "room_resolve",
		"if outcome == '' or version ~= computed_for then", "if outcome == '' then", scripted,
	},
	{
		"a dispute is refunded without the keys of all players", "room_resolve",
		"if not has_all_players(seats, keys_of) then return {'stale', nonce} end\n", "", scripted,
	},
	{
		"a room that ends with a result pays nobody", "lib_finish_room",
		"if payouts then pay_out(", "if nil then pay_out(", crash,
	},
	{
		"a room that ends with a result stays open", "lib_finish_room",
		"  close_room(status_key, finished_key, nil, due_key, visibility, room_id, now_ms, keep_ms, events_ms)\n", "",
		model,
	},

	// Result consumers of rooms.
	{
		"a finished room leaves nothing for whoever waits", "room_finish",
		"if outbox_key then\n  add_to_outbox", "if false then\n  add_to_outbox", outbox,
	},
	{
		"a cancelled room leaves nothing for whoever waits", "room_cancel",
		"if feeds ~= '' then\n  add_to_outbox", "if false then\n  add_to_outbox", outbox,
	},
	{
		"a room that the sweep ends leaves nothing for whoever waits", "room_sweep",
		"if feeds ~= '' then\n    add_to_outbox", "if false then\n    add_to_outbox", feeding,
	},
	{
		"a room is left to nobody without the key of its outbox", "room_leave",
		"if feeds ~= '' and computed_for == '0' then return {'stale', nonce} end", "", outbox,
	},
	{
		"a room ends whose outbox cannot be written", "room_finish",
		"  reject_strings(last_key + 1, last_key + 1)\n", "", outbox,
	},
	{
		"a room without feeds leaves an entry", "room_leave",
		"if feeds ~= '' and (is_empty or is_won) then", "if is_empty or is_won then", outbox,
	},
	{
		"an entry that was not applied leaves the outbox", "outbox_close",
		"if redis.call('HGET', outbox_key, room_id) ~= entry then return 'ok' end", "", outbox,
	},
	{
		"dead letters are stored without bound", "outbox_close",
		" and redis.call('HLEN', parked_key) < tonumber(most_parked)", "", outbox,
	},
	{
		"a room that comes twice counts twice", "lib_call",
		"  if first then return first end\n", "", counted,
	},

	// Leaderboards.
	{
		"a sealed season takes a score", "board_submit",
		"if season[1] or at <", "if at <", scripted,
	},
	{
		"a season takes a score after its end", "board_submit",
		" or to ~= '' and at >= tonumber(to)", "", scripted,
	},
	{
		"an entry is older than one before it", "board_submit",
		"local at = math.max(now_ms, clock)", "local at = now_ms", ordered,
	},
	{
		"the last is the first", "lib_board",
		"return pack_bytes(order == 'asc'", "return pack_bytes(order ~= 'asc'", ordered,
	},
	{
		"a change among the first 100 makes no new version of them", "lib_board",
		"if not hundredth or not is_before(hundredth, member) then", "if not hundredth then", first100,
	},
	{
		"who reaches the score of the hundredth later makes a new version", "lib_board",
		"    x, y = string.byte(a, i), string.byte(b, i)\n", "    break\n", first100,
	},
	{
		"a season is sealed before its end", "board_seal",
		"if math.max(now_ms, tonumber(season[2] or '0')) < tonumber(to) then return 'stale' end", "", scripted,
	},

	// Matches.
	{
		"a match is cancelled before its deadline", "room_close_match",
		" or now_ms < tonumber(deadline)", "", matches,
	},
	{
		"a match that started is cancelled at its deadline", "room_close_match",
		"status ~= 'CREATED' or ", "", matches,
	},
	{
		"a match is opened again over itself", "room_open_match",
		"if redis.call('EXISTS', room_key) == 1 then return 'ok' end\n", "", matches,
	},
	{
		"the host cancels a match", "room_cancel",
		"if user ~= '' and string.byte(feeds) == 116 then return refuse('forbidden', nonce) end", "", matches,
	},

	// Limits that players set for themselves.
	{
		"a stake may exceed the player's limit", "lib_check_limits",
		"if stake ~= '' and not has_at_least(stake, entry) then", "if false then", ownLimit,
	},
	{
		"a player may be in one more paid room than the limit", "lib_check_limits",
		"tonumber(open) >= tonumber(rooms)", "tonumber(open) > tonumber(rooms)", ownLimit,
	},
	{
		"a stake may exceed what the player may still lose", "lib_check_limits",
		"if lost + entry > tonumber(loss) then", "if lost > tonumber(loss) then", ownLimit,
	},
	{
		"a player who is excluded may stake", "lib_check_limits",
		"if excluded and now_ms < tonumber(excluded) then", "if false then", ownLimit,
	},
	{
		"a looser limit that waits counts at once", "lib_check_limits",
		"if from ~= '' and now_ms >= tonumber(from) then", "if from ~= '' then", limits,
	},
	{
		"losses older than a day count", "lib_check_limits",
		"if tonumber(hour) >= oldest then lost", "if true then lost", limits,
	},
	{
		"paid rooms of a player are not counted", "lib_count_stake",
		"math.max(0, open + opened)", "math.max(0, open)", ownLimit,
	},
	{
		"only the last loss of an hour is counted", "lib_count_stake",
		"math.min(9007199254740991, units + lost)", "math.min(9007199254740991, units)", ownLimit,
	},
	{
		"losses of earlier hours are forgotten", "lib_count_stake",
		"elseif tonumber(hour) >= this_hour - 24 then", "elseif false then", limits,
	},
	{
		"a looser limit does not wait a day", "wallet_limit",
		"return limit, wanted, string.format('%d', now_ms + 86400000)", "return wanted, '', ''", limits,
	},
	{
		"an exclusion can be shortened", "wallet_limit",
		"if now_ms < tonumber(excluded) and tonumber(new_excluded) < tonumber(excluded) then", "if false then", limits,
	},
	{
		"limits are set with what was counted before money moved", "wallet_limit",
		"counted = counted_at == seq", "counted = true", limits,
	},

	// What leaves the store.
	{
		"entries leave the ledger before they are folded", "ledger_trim",
		"if tonumber(redis.call('HGET', totals_key, 'folded') or '0') < tonumber(after) then return 'stale' end\n", "",
		scripted,
	},
	{
		"entries leave the ledger after another segment than that of the store", "ledger_trim",
		"if base ~= before or (archived[1] or '') ~= previous_sum then", "if base ~= before then", scripted,
	},
	{
		"other entries leave the ledger than those in the archive", "ledger_trim",
		"if redis.call('LINDEX', ledger_key, count - 1) ~= last_text then return 'stale' end\n", "", scripted,
	},
	{
		"a leader of the archive that has a successor goes on", "ledger_trim",
		"if fence ~= '' and archived[2] and tonumber(fence) < tonumber(archived[2]) then return 'stale' end\n", "",
		scripted,
	},
	{
		"lines leave that the archive does not have", "lines_trim",
		"if redis.call('LINDEX', lines_key, count - 1) ~= last_text then return 'stale' end\n", "", scripted,
	},
	{
		"more lines leave than may", "lines_trim",
		"if base ~= before or redis.call('LLEN', lines_key) < count + least then", "if base ~= before then", scripted,
	},

	// Tournaments.
	{
		"a fee is not counted in the escrow of its tournament", "tour_join",
		"  escrow = string.format('%d', escrow + fee)\n", "", tours,
	},
	{
		"an entrant who joins again changes the tournament", "tour_join",
		"if was and was ~= 'out' then return refuse('ok') end", "", tours,
	},
	{
		"who leaves after the start gets the fee back", "tour_leave",
		"if status == 'RUNNING' then\n", "if false then\n", tours,
	},
	{
		"the fee of an absent player goes back twice", "tour_settle",
		"    if is_released then stake = '0' end\n", "",
		killer{"./competition/tournaments", "TestAbsent"},
	},
	{
		"fees leave the escrow of players who are not next", "tour_settle",
		"if #next_users == 0 or table.concat(next_users, ',') ~= users then", "if #next_users == 0 then", scripted,
	},
	{
		"the same entrants are gone through again and again", "tour_settle",
		"cursor = nonce_of_call, string.format('%d', cursor + #next_users)", "cursor = nonce_of_call, cursor", tours,
	},
	{
		"fees that leave the escrow are in no pool", "tour_settle",
		"    redis.call('HINCRBY', prize_key, 'pool', units)\n", "",
		killer{"./competition/tournaments", "TestTwoPlayers"}, // on nodes that are killed it would never end
	},
	{
		"a tournament is finished while fees are held", "tour_advance",
		"local is_ended = escrow == '0' and\n", "local is_ended =\n", scripted,
	},
	{
		"a tournament is settled before its last match is decided", "tour_advance",
		"next_status == 'SETTLING' and open == '0'", "next_status == 'SETTLING'", scripted,
	},
	{
		"what is being settled can be cancelled", "tour_cancel",
		"if status == 'SETTLING' or status == 'FINISHED' then return {'tournament_closed', nonce_of_call} end\n", "",
		scripted,
	},
	{
		"a round begins with pairings of another round", "tour_pair",
		"if tonumber(new_round) ~= round + 1 then return {'stale', nonce} end\n", "", scripted,
	},
	{
		"a round begins with players who have left", "tour_pair",
		"if version ~= made_for then return {'stale', nonce} end\n", "", tours,
	},
	{
		"a leader of tournaments that has a successor begins a round", "tour_pair",
		"if is_replaced(fence_key, fence) then return {'stale', 'fence'} end\n", "", scripted,
	},
	{
		"a leader of tournaments that has a successor moves fees", "tour_settle",
		"if is_replaced(fence_key, fence) then return {'stale', 'fence'} end\n", "", scripted,
	},
	{
		"a match is decided twice", "tour_report",
		"if state == 'DECIDED' then return {'match_decided', nonce} end\n", "", tours,
	},
	{
		"a result of an earlier attempt decides a match", "tour_report",
		"if attempt ~= made_for or was ~= ''", "if was ~= ''", scripted,
	},
	{
		"a match is decided before its deadline", "tour_report",
		" or over == '1' and now_ms < tonumber(deadline) then", " then", scripted,
	},
	{
		"a player wins who is disqualified at that moment", "tour_report",
		"named == 'disqualified' or named == 'out'", "named == 'out'", scripted,
	},
	{
		"who comes back after the start pays the fee once more", "tour_join",
		"fee ~= '0' and (not was or was_stake == '0')", "fee ~= '0'", lateJoins,
	},
	{
		"who got the fee back comes back without a fee", "tour_join",
		"(not was or was_stake == '0')", "not was", lateJoins,
	},
	{
		"who comes back is counted among those who are there once more", "tour_join",
		"if not was or was_checked == '' then", "if true then", lateJoins,
	},
	{
		"who comes back without having checked in is not counted", "tour_join",
		"if not was or was_checked == '' then", "if not was then", lateJoins,
	},
	{
		"who joins late takes the place of one who is not looked at yet", "tour_join",
		"if is_late and cursor == entrants then", "if is_late then", lateJoins,
	},
	{
		"who joins late is looked at as one who did not check in", "tour_join",
		"if is_late and cursor == entrants then", "if false then", lateJoins,
	},
	{
		"who comes back finds a tournament full of others and the own place", "tour_join",
		"if not was and tonumber(entrants)", "if tonumber(entrants)", lateJoins,
	},
	{
		"nobody joins in the last round for it", "tour_join",
		"tonumber(round) <= tonumber(late_rounds)", "tonumber(round) < tonumber(late_rounds)", lateJoins,
	},
	{
		"who comes back is one more entrant", "tour_join",
		"if not was then\n  if is_late", "if true then\n  if is_late", lateJoins,
	},
	{
		"a player checks in after the start", "tour_check_in",
		"status ~= 'CHECK_IN' or now_ms >= tonumber(starts)", "status ~= 'CHECK_IN'", lateJoins,
	},
	{
		"who has left goes on to play", "tour_attempt",
		"if not state or state == 'out' then", "if not state then", lateJoins,
	},
	{
		"losses of two days ago count against a limit", "lib_check_limits",
		"/ 3600000) - 24", "/ 3600000) - 48", limits,
	},
}
