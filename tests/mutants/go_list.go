package main

// The tests that must notice a mutant of Go code. Each is one of the cheap ones of its package.
var (
	alarms     = killer{"./internal/money/audit", "TestTheAlarm|TestAWalletDiffers"}
	losses     = killer{"./internal/money/limits", "TestStakesOfTwoDays|TestLossesAreShown"}
	lastWeek   = killer{"./internal/store/history", "TestAStoreOfLastWeek|TestAnEpochThatGoesBack"}
	bounds     = killer{"./competition/leaderboards", "TestTheBoundsOf|TestPlayersDoNotChoose|TestSoManyRise"}
	deleted    = killer{"./competition/leaderboards", "TestADeletedBoardPays"}
	goneSeason = killer{"./competition/leaderboards", "TestASeasonThatOwesPrizesIsKept"}
	owed       = killer{"./internal/money/prizes", "TestPrizesThatAreOwed"}
	unlisted   = killer{"./competition/tournaments", "TestPlayersAreNotShown"}
	atTheEnd   = killer{"./competition/tournaments", "TestAContradictionBeforeTheEnd|TestNoRoundBegins"}
	shares     = killer{"./internal/players/ratelimit", "TestOnlySignInsAndSignUps"}
	outages    = killer{"./internal/players/auth", "TestAWatchedExternalSessionOutlives"}
	hanging    = killer{"./internal/players/ratelimit", "TestAReportThatHangs|TestABucketThatIsDue"}
	decisions  = killer{"./internal/players/ratelimit", "TestDecide|TestABusyCallerLeases|TestRepliesOfTheStore"}
	lingers    = killer{"./internal/players/presence", "TestWhoIsBack"}
	leases     = killer{"./internal/players/presence", "TestANodeEndsNoLease"}
	copies     = killer{"./internal/store/backup", "TestTheSumOfACopy|TestACopyWithAnother"}
)

// goMutants are the defects of Go code.
var goMutants = []mutant{
	// The alarm of the books.
	{
		"units that somebody made stop no money", "internal/money/audit/alarm.go",
		"delta := deltaOf(of); delta != 0", "delta := deltaOf(of); delta > 0", alarms,
	},
	{
		"units that are gone stop no money", "internal/money/audit/alarm.go",
		"delta := deltaOf(of); delta != 0", "delta := deltaOf(of); delta < 0", alarms,
	},
	{
		"a wallet with too much is right", "internal/money/audit/alarm.go",
		"units != 0 && (ok || all)", "units > 0 && (ok || all)", alarms,
	},
	{
		"a wallet with too little is right", "internal/money/audit/alarm.go",
		"units != 0 && (ok || all)", "units < 0 && (ok || all)", alarms,
	},
	{
		"a token without a line among the newest is wrong", "internal/money/audit/alarm.go",
		"units != 0 && (ok || all)", "units != 0 && (ok || all || true)", alarms,
	},
	{
		"a token whose lines left the store is wrong", "internal/money/audit/alarm.go",
		"== w.lineCount && w.base == 0", "== w.lineCount", alarms,
	},
	{
		"what is held is not compared", "internal/money/audit/alarm.go",
		"line.Free + line.Held - b.Free - b.Held;", "line.Free - b.Free;", alarms,
	},
	{
		"a token that is gone is right", "internal/money/audit/alarm.go",
		"if _, ok := w.balances[code]; !ok && line.Free+line.Held != 0 {", "if false {", alarms,
	},
	{
		"the walk over wallets does not begin anew", "internal/money/audit/alarm.go",
		"\tif after >= last {\n\t\tafter = 0\n\t}\n", "", alarms,
	},
	{
		"the walk over wallets looks at the first ones alone", "internal/money/audit/alarm.go",
		"a.next[gameID] = upTo", "", alarms,
	},
	{
		"the walk over wallets leaves out the last one of a look", "internal/money/audit/alarm.go",
		"id := after + 1; id <= upTo", "id := after + 1; id < upTo", alarms,
	},
	{
		"the walk over wallets leaves out the first one of a look", "internal/money/audit/alarm.go",
		"id := after + 1; id <= upTo", "id := after + 2; id <= upTo", alarms,
	},
	{
		"a wallet that differed is not looked at again", "internal/money/audit/alarm.go",
		"\ta.broken[gameID] = broken\n", "\t_ = broken\n", alarms,
	},

	// A player's own limits.
	{
		"losses of two days ago are shown", "internal/money/limits/store.go",
		"const lossHours = 24", "const lossHours = 48", losses,
	},
	{
		"losses of every hour are shown", "internal/money/limits/store.go",
		"unitsErr == nil && hour >= oldest", "unitsErr == nil && (hour >= oldest || true)", losses,
	},
	{
		"a stake of two days ago is no open room", "internal/money/limits/store.go",
		"!recent && held >= at.held", "!recent", losses,
	},
	{
		"a stake that came back is an open room", "internal/money/limits/store.go",
		"line.Reason == entryReason && !closed[line.Ref]", "line.Reason == entryReason", losses,
	},

	// The history of the store.
	{
		"a store of last week is one of a failover", "internal/store/history/history.go",
		"\t\t\tisOlder && lastSeen.Sub(timeOf(l.head)) <= s.options.MaxRecentLoss\n", "\t\t\tisOlder\n", lastWeek,
	},
	{
		"a store of last week without its first entries is one of a failover", "internal/store/history/history.go",
		"hasFirst, isRecent = true, lastSeen.Sub(timeOf(l.head)) <= s.options.MaxRecentLoss",
		"hasFirst, isRecent = true, true", lastWeek,
	},
	{
		"what a failover lost of old entries stops money", "internal/store/history/history.go",
		" ||\n\t\t\tisOlder && lastSeen.Sub(timeOf(l.head)) <= s.options.MaxRecentLoss\n", "\n", lastWeek,
	},
	{
		"what a failover lost of a ledger without its first entries stops money", "internal/store/history/history.go",
		"case isOlder && (g.first == \"\" || l.base > 0):", "case false:", lastWeek,
	},
	{
		"an epoch that goes back is the same", "internal/store/history/history.go",
		"case m.epoch < s.known.Epoch: // the record itself went back", "case false:", lastWeek,
	},
	{
		"a store of an earlier epoch than the mark is the right one", "internal/store/history/history.go",
		"if len(gone) > 0 || s.known.Epoch > m.epoch {", "if len(gone) > 0 {", lastWeek,
	},

	// Leaderboards and their prizes.
	{
		"players choose their segments", "competition/leaderboards/submit.go",
		`, {"segments", a.in.Segments != nil}}`, "}", bounds,
	},
	{
		"the largest score of a rule is rejected", "competition/leaderboards/submit.go",
		"call.score > bound", "call.score >= bound", bounds,
	},
	{
		"a score above the largest of a rule counts", "competition/leaderboards/submit.go",
		"call.score > bound", "call.score > bound+1", bounds,
	},
	{
		"the smallest score of a rule is rejected", "competition/leaderboards/submit.go",
		"call.score < bound", "call.score <= bound", bounds,
	},
	{
		"one less falls than the league says", "competition/leaderboards/leagues.go",
		"rank >= players-int64(l.Relegate)", "rank > players-int64(l.Relegate)", bounds,
	},
	{
		"one more falls than the league says", "competition/leaderboards/leagues.go",
		"rank >= players-int64(l.Relegate)", "rank >= players-1-int64(l.Relegate)", bounds,
	},
	{
		"one more rises than the league says", "competition/leaderboards/leagues.go",
		"rank < int64(l.Promote)", "rank <= int64(l.Promote)", bounds,
	},
	{
		"a deleted board keeps the prizes that are being paid", "competition/leaderboards/prizes.go",
		"_, err = s.prizes.Pay(ctx, b.gameID, source)", "err = nil", deleted,
	},
	{
		"the prizes of a deleted board are not forgotten", "competition/leaderboards/prizes.go",
		"cmp.Or(err, s.prizes.Forget(ctx, b.gameID, source))", "cmp.Or(err)", deleted,
	},
	{
		"the plan of a season that is gone stays", "competition/leaderboards/prizes.go",
		"return s.prizes.ForgetPlan(ctx, b.gameID, b.prizeSource(one))", "return nil", goneSeason,
	},
	{
		"what a deleted board has promised is remembered", "competition/leaderboards/prizes.go",
		"return s.prizes.ForgetBudget(ctx, b.gameID, b.key)", "return nil",
		killer{"./competition/leaderboards", "TestASeasonThatIsEndedEarly"},
	},
	{
		"prizes that are owed are forgotten", "internal/money/prizes/store.go",
		"p.State != StatePaid && p.State != StateVoid {\n\t\treturn err\n\t}\n\tif err := s.forgetPlan",
		"p.State == \"\" {\n\t\treturn err\n\t}\n\tif err := s.forgetPlan", owed,
	},
	{
		"a plan that is owed is forgotten", "internal/money/prizes/store.go",
		"p.State != StatePaid && p.State != StateVoid {\n\t\treturn err\n\t}\n\treturn",
		"p.State == \"\" {\n\t\treturn err\n\t}\n\treturn", owed,
	},
	{
		"prizes are forgotten while a leader may still pay them", "internal/money/prizes/store.go",
		"const stateLife = time.Minute", "const stateLife = time.Second", owed,
	},
	{
		"the plan of prizes that are forgotten stays", "internal/money/prizes/store.go",
		"if err := s.forgetPlan(ctx, gameID, source); err != nil {", "if err != nil {", owed,
	},

	// Tournaments.
	{
		"the end cuts a dispute short", "competition/tournaments/matches.go",
		"case isReported:", "case isReported && false:", atTheEnd,
	},
	{
		"the end cuts a replay short", "competition/tournaments/matches.go",
		"if m.Attempt > 1 {", "if m.Attempt > 1 && false {", atTheEnd,
	},
	{
		"the end forgets a room that has ended", "competition/tournaments/matches.go",
		"room.Status == rooms.Disputed || room.Status.Ended():", "room.Status == rooms.Disputed:", atTheEnd,
	},
	{
		"a round begins after the end", "competition/tournaments/matches.go",
		"if !hasTime {", "if !hasTime && false {", atTheEnd,
	},
	{
		"unlisted tournaments are listed", "competition/tournaments/service.go",
		"caller.Role == principal.Player && t.definition.Visibility != Public", "false", unlisted,
	},
	{
		"unlisted tournaments are hidden from staff", "competition/tournaments/service.go",
		"caller.Role == principal.Player && t.definition.Visibility != Public", "t.definition.Visibility != Public", unlisted,
	},

	// Limits and sessions.
	{
		"each node adds accounts to the limit of sign-ups", "internal/players/ratelimit/limits.go",
		"class == SignIn || class == SignUp", "class == SignIn", shares,
	},
	{
		"each node adds guesses to the limit of sign-ins", "internal/players/ratelimit/limits.go",
		"class == SignIn || class == SignUp", "class == SignUp", shares,
	},
	{
		"a session of an outside issuer goes on for ever", "internal/players/auth/sessions.go",
		", now.Sub(w.verifiedAt) >= maxExternalCheckAge:", ":", outages,
	},
	{
		"a session of an outside issuer ends with the first outage", "internal/players/auth/sessions.go",
		", now.Sub(w.verifiedAt) >= maxExternalCheckAge:", ", err != nil:", outages,
	},
	{
		"a session ends an hour after its first check", "internal/players/auth/sessions.go",
		"\t\t\tw.verifiedAt = now\n", "", outages,
	},
	{
		"a report that timed out opens the share", "internal/players/ratelimit/decide.go",
		"s.unreported+s.unknown < limit.share(class)", "s.unreported < limit.share(class)", hanging,
	},
	{
		"what is in a report that hangs is charged twice", "internal/players/ratelimit/limiter.go",
		"used, wanted := b.unreported-b.reporting, b.leasePermits", "used, wanted := b.unreported, b.leasePermits", hanging,
	},
	{
		"a report that timed out closes the share for ever", "internal/players/ratelimit/decide.go",
		"!errors.Is(err, context.DeadlineExceeded) {\n\t\ts.unknown = 0",
		"!errors.Is(err, context.DeadlineExceeded) && false {\n\t\ts.unknown = 0", hanging,
	},
	{
		"a bucket is reported twice at once", "internal/players/ratelimit/report.go",
		"if b.reporting > 0 { // it was due, and urgent", "if false {", hanging,
	},
	{
		"an empty bucket allows requests", "internal/players/ratelimit/decide.go",
		"s.available(now, limit) < 1", "s.available(now, limit) < 0", decisions,
	},
	{
		"a store that is down is asked", "internal/players/ratelimit/decide.go",
		"case isStoreDown:", "case isStoreDown && s.unreported+s.unknown < limit.share(class):", decisions,
	},
	{
		"a lease never expires", "internal/players/ratelimit/decide.go",
		"return now.Before(s.leaseExpires)", "return true", decisions,
	},
	{
		"an older reply of the store makes permits", "internal/players/ratelimit/decide.go",
		"if at.After(s.fullInRedisAt) {", "if true {", decisions,
	},

	// Presence.
	{
		"who is back within the linger is gone", "internal/players/presence/service.go",
		"m == nil || !m.leavesAt.Equal(l.until)", "m == nil", lingers,
	},
	{
		"who is back keeps the time of the loss", "internal/players/presence/service.go",
		"if m.leavesAt = (time.Time{}); m.isGone {", "if m.isGone {", lingers,
	},
	{
		"who is back while the loss is stored is forgotten", "internal/players/presence/changes.go",
		"m != nil && m.isGone && !m.isChanged {", "m != nil {", lingers,
	},
	{
		"an outage that is longer than a lease ends all leases", "internal/players/presence/lease.go",
		"now.Sub(s.renewedAt) > s.options.Lease*3/4", "false", leases,
	},
	{
		"a node that has just begun ends leases", "internal/players/presence/lease.go",
		"now.Sub(s.renewedSince) >= s.options.Lease &&", "", leases,
	},

	// Backups.
	{
		"the sum of a copy is not compared", "internal/store/backup/replica.go",
		"stored != 0 && stored != c.sum.Sum64()", "stored != 0 && stored == 0", copies,
	},
	{
		"a copy of a server that makes no sums is damaged", "internal/store/backup/replica.go",
		"stored != 0 && stored != c.sum.Sum64()", "stored != c.sum.Sum64()", copies,
	},
	{
		"the sum of a copy has its bytes in the other order", "internal/store/backup/replica.go",
		"(8 * i)", "(56 - 8*i)", copies,
	},
	{
		"anything with a sum is a copy", "internal/store/backup/replica.go",
		"string(c.start) != rdbMagic || ", "", copies,
	},
	{
		"the sum of a copy is of another polynomial", "internal/store/backup/replica.go",
		"crc64.MakeTable(0x95AC9329AC4BC9B5)", "crc64.MakeTable(crc64.ECMA)", copies,
	},
}
