package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/ops/migrate"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// dumpedAt is when the dump is made, for tests that compare whole stores.
var dumpedAt = time.Now().Add(-time.Minute).Truncate(time.Millisecond)

// newOldStore returns a store of layout 1.
func newOldStore(t *testing.T) *redisdb.DB {
	t.Helper()
	db := redistest.Single(t)
	loadDump(t, db, dumpedAt)
	return db
}

// reload makes a store one of layout 1 again.
func reload(t *testing.T, db *redisdb.DB) {
	t.Helper()
	testkit.Check(t, db.Client.FlushDB(t.Context()).Err())
	loadDump(t, db, dumpedAt)
}

// readStore returns every key with its type, value and time of expiry, without the lease.
func readStore(t *testing.T, db *redisdb.DB) map[string]string {
	t.Helper()
	ctx := t.Context()
	stored := map[string]string{}
	for _, name := range db.Client.Keys(ctx, "*").Val() {
		if strings.HasPrefix(name, "{l:") {
			continue
		}
		kind := db.Client.Type(ctx, name).Val()
		var value any
		switch kind {
		case "string":
			value = db.Client.Get(ctx, name).Val()
		case "hash":
			fields := db.Client.HGetAll(ctx, name).Val() // fmt prints maps in order
			if name == keys.Meta() {                     // the command gives the installation a name
				delete(fields, keys.MetaInstallationField)
				delete(fields, keys.MetaEpochField)
			}
			value = fields
		case "list":
			value = db.Client.LRange(ctx, name, 0, -1).Val()
		case "zset":
			value = db.Client.ZRangeWithScores(ctx, name, 0, -1).Val()
		case "set":
			members := db.Client.SMembers(ctx, name).Val()
			slices.Sort(members)
			value = members
		case "stream":
			value = db.Client.XRange(ctx, name, "-", "+").Val()
		}
		expires := db.Client.Do(ctx, "PEXPIRETIME", name).Val()
		stored[name] = fmt.Sprintf("%s %v %v", kind, expires, value)
	}
	return stored
}

// wantSame fails the test unless two stores are the same.
func wantSame(t *testing.T, got, want map[string]string) {
	t.Helper()
	differences := 0
	for name := range union(got, want) {
		if got[name] != want[name] && differences < 10 {
			t.Errorf("%s:\n got %s\nwant %s", name, got[name], want[name])
			differences++
		}
	}
	if differences > 0 {
		t.FailNow()
	}
}

func union(a, b map[string]string) map[string]struct{} {
	all := map[string]struct{}{}
	for name := range a {
		all[name] = struct{}{}
	}
	for name := range b {
		all[name] = struct{}{}
	}
	return all
}

// run migrates a store with a short lease and fails the test unless that succeeds.
func run(t *testing.T, db *redisdb.DB) migrate.Result {
	t.Helper()
	return testkit.Must(migrate.Run(t.Context(), db, migrate.Options{}))(t)
}

// wantBalanced fails the test unless a full audit of the migrated store is balanced.
func wantBalanced(t *testing.T, db *redisdb.DB) audit.DeepReport {
	t.Helper()
	report, err := moneytest.NewAudit(db, wallet.New(db, nil, wallet.Options{})).AuditFromFirstEntry(t.Context(), 0)
	if err != nil || !report.Balanced || !report.HeldCounted {
		t.Fatalf("the migrated store is not balanced: %+v, %v", report, err)
	}
	return report
}

func TestMoneyIsWhatItWas(t *testing.T) {
	db := newOldStore(t)
	before := db.Client.HGetAll(t.Context(), keys.OldTotalsKey()).Val()
	result := run(t, db)
	report := wantBalanced(t, db)
	for _, of := range report.Tokens {
		for total, units := range map[string]wallet.Units{
			keys.TotalMinted: of.MintedUnits, keys.TotalWallets: of.WalletsUnits,
			keys.TotalEscrow: of.EscrowUnits, keys.TotalHouse: of.HouseUnits,
		} {
			want := before[keys.TotalField(total, of.TokenCode)]
			if got := units.String(); got != want && (got != "0" || want != "") {
				t.Errorf("%s of %s: %s, was %s", total, of.TokenCode, got, want)
			}
		}
	}
	if len(report.Tokens) != 3 || report.Wallets != 7 || report.Entries != result.Counts["ledger entries"] {
		t.Errorf("%+v", report)
	}
	games := map[int64]bool{}
	for _, of := range result.Tokens {
		games[of.GameID] = true
		if of.Minted != of.Wallets+of.Escrow+of.House {
			t.Errorf("%+v", of)
		}
	}
	if !games[1] || !games[2] { // GOLD was in both games
		t.Errorf("%+v", result.Tokens)
	}
}

func TestNothingOfTheOldLayoutIsLeft(t *testing.T) {
	db := newOldStore(t)
	old := readStore(t, db)
	foreign := "{cart:7}:items"
	db.Client.Set(t.Context(), foreign, "of another tenant", 0)
	run(t, db)
	for name, value := range readStore(t, db) {
		if strings.HasPrefix(name, "{e:main}") || strings.HasPrefix(value, "stream") || strings.HasPrefix(value, "set ") {
			t.Errorf("%s is left: %s", name, value)
		}
	}
	// The members of indexes and what codes name are rooms of the new layout.
	ctx := t.Context()
	rooms := 0
	for _, name := range db.Client.Keys(ctx, "*").Val() {
		tag, rest, _ := strings.Cut(name, "}:")
		var named []string
		switch {
		case rest == "rooms" || strings.HasPrefix(rest, "rooms:") || strings.HasPrefix(rest, "player:"):
			named = db.Client.ZRange(ctx, name, 0, -1).Val()
		case strings.HasPrefix(rest, "code:"):
			named = []string{db.Client.Get(ctx, name).Val()}
		case strings.HasPrefix(rest, "room:") && rest != "room:next":
			rooms++
		}
		for _, id := range named {
			if db.Client.HGet(ctx, tag+"}:room:"+id, "live").Err() != nil {
				t.Errorf("%s names %s, which is no room", name, id)
			}
		}
	}
	if rooms != 14 {
		t.Errorf("%d rooms", rooms)
	}
	after := readStore(t, db)
	for _, kept := range []string{keys.Pepper(), keys.UserIDCounter(), keys.Game(1), keys.Save(1, 1, "main"), foreign} {
		if want := old[kept]; kept != foreign && after[kept] != want || after[kept] == "" {
			t.Errorf("%s: %s, was %s", kept, after[kept], want)
		}
	}
	testkit.Report(t, db.CheckRequirements(ctx, redisdb.Requirements{MaxWait: time.Second, FreeShards: 4}))
	if r := run(t, db); !r.WasDone {
		t.Errorf("migrated twice: %+v", r)
	}
	wantSame(t, readStore(t, db), after)
}

// TestWhatNodesLookUpIsWhereTheyLook has what no player sees: a receipt in every economy in which a
// request that is sent again may look for it, counters, the identities of a player, the bytes of
// saves.
func TestWhatNodesLookUpIsWhereTheyLook(t *testing.T) {
	db := newOldStore(t)
	ctx := t.Context()
	const games = 3
	wanted := map[string]string{} // by key
	for game := range int64(games) {
		wanted[keys.RoomCounter(keys.EconomyShard(game+1))] = db.Client.Get(ctx, "{e:main}:room:next").Val()
	}
	expiries := map[string]time.Duration{}
	for _, name := range db.Client.Keys(ctx, "{e:main}:receipt:*").Val() {
		caller, digest, _ := strings.Cut(strings.TrimPrefix(name, "{e:main}:receipt:"), ":")
		if strings.HasPrefix(digest, "call:") {
			continue
		}
		of := []int64{1, 2, 3}
		switch caller[0] {
		case 'g':
			game, _ := strconv.ParseInt(caller[1:], 10, 64)
			of = []int64{game}
		case 'u':
			user, _ := strconv.ParseInt(caller[1:], 10, 64)
			game, _ := db.Client.HGet(ctx, keys.User(user), "game").Int64()
			of = []int64{game}
		}
		for _, game := range of {
			expiries[keys.MoneyReceipt(game, caller, digest[:16])] = db.Client.PExpireTime(ctx, name).Val()
		}
	}
	saves := map[string]int64{} // bytes of states by the key of the list
	for user, game := range map[int64]int64{1: 1, 5: 2} {
		list := keys.Saves(user, game)
		for slot := range db.Client.HGetAll(ctx, list).Val() {
			for field, state := range db.Client.HGetAll(ctx, keys.Save(user, game, slot)).Val() {
				if _, err := strconv.Atoi(field); err == nil {
					saves[list] += int64(len(state))
				}
			}
		}
	}
	identities := len(db.Client.Keys(ctx, "{g:*}:identity:*").Val())
	run(t, db)

	for name, want := range wanted {
		if got := db.Client.Get(ctx, name).Val(); got != want || want == "" {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, want := range expiries {
		if got := db.Client.PExpireTime(ctx, name).Val(); got != want {
			t.Errorf("%s expires at %v, want %v", name, got, want)
		}
	}
	if n := len(db.Client.Keys(ctx, "{e:*}:receipt:*").Val()); n != len(expiries) || n < 50 {
		t.Errorf("%d receipts, want %d", n, len(expiries))
	}
	for name, want := range saves {
		if got, _ := db.Client.HGet(ctx, name, keys.SavesBytesField).Int64(); got != want || want == 0 {
			t.Errorf("%s has %d bytes, want %d", name, got, want)
		}
	}
	found := 0
	for _, name := range db.Client.Keys(ctx, "{u:*}:user").Val() {
		for field := range db.Client.HGetAll(ctx, name).Val() {
			kind, digest, ok := keys.ParseUserIdentityField(field)
			if !ok {
				continue
			}
			game, _ := db.Client.HGet(ctx, name, "game").Int64()
			if owner := db.Client.Get(ctx, keys.Identity(game, kind, digest)).Val(); "{u:"+owner+"}:user" != name {
				t.Errorf("%s has the identity %s, which is of %q", name, field, owner)
			}
			found++
		}
	}
	if found != identities || found < 7 {
		t.Errorf("%d identities of players, want %d", found, identities)
	}
}

// errCut is what a cutter returns.
var errCut = errors.New("the connection was cut")

// cutter is a hook that lets a number of script calls through and fails those after it.
type cutter struct{ left atomic.Int64 }

func (*cutter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *cutter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if isScript(cmd) && c.left.Add(-1) < 0 {
			cmd.SetErr(errCut)
			return errCut
		}
		return next(ctx, cmd)
	}
}

func (c *cutter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		for i, cmd := range commands {
			if !isScript(cmd) || c.left.Add(-1) >= 0 {
				continue
			}
			if i > 0 {
				_ = next(ctx, commands[:i])
			}
			for _, rest := range commands[i:] {
				rest.SetErr(errCut)
			}
			return errCut
		}
		return next(ctx, commands)
	}
}

func isScript(cmd redis.Cmder) bool { return strings.HasPrefix(cmd.Name(), "eval") }

// TestAMigrationThatStopsAnywhereIsFinishedByTheNext stops after a number of writes, for numbers
// all over the migration, twice in a row, and goes on.
func TestAMigrationThatStopsAnywhereIsFinishedByTheNext(t *testing.T) {
	db := newOldStore(t)
	var c cutter
	db.Client.AddHook(&c)
	c.left.Store(1 << 40)
	run(t, db) // the server has the scripts now
	reload(t, db)
	c.left.Store(1 << 40)
	run(t, db)
	calls := 1<<40 - c.left.Load()
	want := readStore(t, db)
	if calls < 400 {
		t.Fatalf("only %d calls of scripts", calls)
	}
	for _, stopsAfter := range append([]int64{0, 1, 2, 3, calls - 4, calls - 3, calls - 2}, spread(calls, 14)...) {
		reload(t, db)
		for _, n := range []int64{stopsAfter, stopsAfter / 2} {
			c.left.Store(n)
			if _, err := migrate.Run(t.Context(), db, migrate.Options{}); err == nil && n == stopsAfter {
				t.Fatalf("a migration that stopped after %d writes succeeded", n)
			}
			db.Client.Del(t.Context(), keys.Lock("migration")) // as after the lease
		}
		c.left.Store(1 << 40)
		run(t, db)
		wantSame(t, readStore(t, db), want)
	}
}

// spread returns numbers from 0 to end, at equal distances.
func spread(end int64, count int64) (numbers []int64) {
	for i := range count {
		numbers = append(numbers, i*end/count)
	}
	return numbers
}

// pauser is a hook that stops before one script call until it may go on.
type pauser struct {
	cutter
	reached, goOn chan struct{}
}

func (p *pauser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if isScript(commands[0]) && p.left.Add(-1) == 0 {
			close(p.reached)
			<-p.goOn
		}
		return next(ctx, commands)
	}
}

func (p *pauser) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// TestAMigrationThatWasPausedChangesNothingLater pauses a migration before one of its writes, lets
// another one finish and a player spend, and wakes the first one up.
func TestAMigrationThatWasPausedChangesNothingLater(t *testing.T) {
	for _, pipeline := range []int64{2, 3, 5, 8} { // the first is the lease
		db := newOldStore(t)
		paused := testkit.Must(redisdb.Open(redistestURL(t, db)))(t)
		defer func() { _ = paused.Close() }()
		p := &pauser{reached: make(chan struct{}), goOn: make(chan struct{})}
		p.left.Store(pipeline)
		paused.Client.AddHook(p)
		done := make(chan error, 1)
		go func() {
			_, err := migrate.Run(context.WithoutCancel(t.Context()), paused, migrate.Options{Lease: 200 * time.Millisecond})
			done <- err
		}()
		select {
		case <-p.reached:
		case err := <-done:
			t.Fatalf("the migration ended before its write %d: %v", pipeline, err)
		}
		run(t, db)
		db.Client.HSet(t.Context(), keys.Wallet(1, 1), "GOLD", "1|2")
		db.Client.Del(t.Context(), keys.Wallet(1, 2), keys.Inventory(1, 1))
		want := readStore(t, db)
		close(p.goOn)
		if err := <-done; err == nil {
			t.Errorf("a migration that was overtaken before its write %d succeeded", pipeline)
		}
		wantSame(t, readStore(t, db), want)
	}
}

// visitor is a hook that calls visit before each command that is sent on its own.
type visitor struct{ visit func(cmd redis.Cmder) }

func (visitor) DialHook(next redis.DialHook) redis.DialHook { return next }

func (v visitor) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		v.visit(cmd)
		return next(ctx, cmd)
	}
}

func (visitor) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestAMigrationThatWasPausedBetweenWritesDoesNotTakeTheLeaseAgain pauses a migration while it has
// nothing to write, for longer than its lease: another one finishes, and players sign in.
func TestAMigrationThatWasPausedBetweenWritesDoesNotTakeTheLeaseAgain(t *testing.T) {
	db := newOldStore(t)
	paused := testkit.Must(redisdb.Open(redistestURL(t, db)))(t)
	defer func() { _ = paused.Close() }()
	reached, goOn := make(chan struct{}), make(chan struct{})
	scans := 0
	paused.Client.AddHook(visitor{func(cmd redis.Cmder) {
		if cmd.Name() != "scan" {
			return
		}
		if scans++; scans == 4 { // two of the pass that reads, then of that which writes
			close(reached)
			<-goOn
		}
	}})
	done := make(chan error, 1)
	go func() {
		_, err := migrate.Run(context.WithoutCancel(t.Context()), paused, migrate.Options{Lease: 500 * time.Millisecond})
		done <- err
	}()
	select {
	case <-reached:
	case err := <-done:
		t.Fatalf("the migration ended before: %v", err)
	}
	if got := db.Client.HGet(t.Context(), keys.Meta(), keys.MetaLayoutField).Val(); got != "1>3" {
		t.Fatalf("the migration was paused at layout %s", got)
	}
	run(t, db)
	families := db.Client.Keys(t.Context(), "{u:*}:refresh:*").Val()
	if len(families) == 0 {
		t.Fatal("the store has no session")
	}
	for _, name := range families {
		db.Client.HSet(t.Context(), name, "start", "1", "by", "key")
	}
	want := readStore(t, db)
	close(goOn)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "lost its lease") {
		t.Errorf("a migration that was overtaken ends with %v", err)
	}
	wantSame(t, readStore(t, db), want)
}

// waitForLease waits until the lease of a migration lasts for no longer than a time.
func waitForLease(t *testing.T, db *redisdb.DB, left time.Duration) {
	t.Helper()
	for db.Client.PTTL(t.Context(), keys.Lock("migration")).Val() > left {
		time.Sleep(time.Millisecond) // a lease ends by time alone: time is the subject
	}
}

// TestALargePageIsWritten reads one wallet for longer than a script may write without a renewal.
func TestALargePageIsWritten(t *testing.T) {
	db := newOldStore(t)
	run(t, db)
	want := readStore(t, db)
	reload(t, db)
	slow := testkit.Must(redisdb.Open(redistestURL(t, db)))(t)
	defer func() { _ = slow.Close() }()
	const lease = time.Second
	scans, isSlow := 0, false
	slow.Client.AddHook(visitor{func(cmd redis.Cmder) {
		switch {
		case cmd.Name() == "scan":
			scans++
		case scans == 4 && cmd.Name() == "xrange" && !isSlow: // in the pass that writes
			isSlow = true
			waitForLease(t, db, 4*lease/10)
		}
	}})
	testkit.Must(migrate.Run(t.Context(), slow, migrate.Options{Lease: lease}))(t)
	if !isSlow {
		t.Error("no lines were read in the pass that writes")
	}
	wantSame(t, readStore(t, db), want)
}

// TestAFreeRoomDoesNotKeepItsID has a room of the first shard whose random bits are those that name
// the shard today.
func TestAFreeRoomDoesNotKeepItsID(t *testing.T) {
	db := newOldStore(t)
	ctx := t.Context()
	const id, unlucky = "01a21d95-a3e9-8000-807e-904bfd1c1516", "01a21d95-a3e9-8000-8000-904bfd1c1516"
	room := "{r0}:room:" + id
	settings := db.Client.HGet(ctx, room, "set").Val()
	code := strings.Split(db.Client.HGet(ctx, room, "doc").Val(), "\t")[1]
	testkit.Must(db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, room, "set", strings.Replace(settings, id, unlucky, 1))
		p.Rename(ctx, room, "{r0}:room:"+unlucky)
		p.Rename(ctx, room+":events", "{r0}:room:"+unlucky+":events")
		p.Set(ctx, "{r0}:code:"+code, unlucky, 0)
		for _, index := range []string{"{r0}:rooms:0:all", "{r0}:rooms:1:all", "{r0}:rooms:due"} {
			p.ZAdd(ctx, index, redis.Z{Score: db.Client.ZScore(ctx, index, id).Val(), Member: unlucky})
			p.ZRem(ctx, index, id)
		}
		return nil
	}))(t)
	run(t, db)
	wantBalanced(t, db)
	migrated := db.Client.Get(ctx, "{r0}:code:"+code).Val()
	if migrated == unlucky || db.Client.HGet(ctx, "{r0}:room:"+migrated, "settings").Err() != nil {
		t.Errorf("the code names %s, which is no new room", migrated)
	}
	if n := db.Client.Exists(ctx, "{r0}:room:"+unlucky).Val(); n != 0 {
		t.Error("the old room is left")
	}
}

// TestAMigratedStoreHasItsNameBeforeNodesMayStart stops a migration before its last write.
func TestAMigratedStoreHasItsNameBeforeNodesMayStart(t *testing.T) {
	db := newOldStore(t)
	layout := func() string { return db.Client.HGet(t.Context(), keys.Meta(), keys.MetaLayoutField).Val() }
	create := func(context.Context) error {
		if got := layout(); got != "1>3:remove" {
			t.Errorf("the installation is named with layout %s", got)
		}
		return errCut
	}
	testkit.Fails(migrate.Run(t.Context(), db, migrate.Options{CreateInstallation: create}))(
		t, errCut, "without a name the migration ends with")
	if got := layout(); got != "1>3:remove" {
		t.Errorf("nodes may start on layout %s", got)
	}
	run(t, db)
	wantBalanced(t, db)
}

// redistestURL returns the address of a store of redistest.Single.
func redistestURL(t *testing.T, db *redisdb.DB) string {
	t.Helper()
	options := db.Client.(*redis.Client).Options()
	return fmt.Sprintf("unix://%s?db=%d", options.Addr, options.DB)
}

// TestScriptsWriteForHalfOfTheLease leaves the other half to servers whose clocks differ.
func TestScriptsWriteForHalfOfTheLease(t *testing.T) {
	db := redistest.Single(t)
	const lease = time.Minute
	before := db.Client.Time(t.Context()).Val()
	reply, err := db.RunScript(t.Context(), scripts.MigrationLease, []string{keys.Lock("migration")}, "a",
		lease.Milliseconds(), "")
	if err != nil || reply.Status != scripts.OK {
		t.Fatalf("%+v, %v", reply, err)
	}
	after := db.Client.Time(t.Context()).Val()
	values := redisdb.NewValues("the lease", reply.Values)
	deadline := time.UnixMilli(values.NextInt())
	if deadline.Before(before.Add(lease/2-time.Millisecond)) || deadline.After(after.Add(lease/2)) || values.Err() != nil {
		t.Errorf("scripts write until %v, %v; the lease began between %v and %v", deadline, values.Err(), before, after)
	}
}

func TestOfTwoMigrationsOneIsRejected(t *testing.T) {
	db := newOldStore(t)
	other := "somebody else"
	stop, stopped := make(chan struct{}), make(chan struct{})
	renew := func() { db.Client.Set(context.WithoutCancel(t.Context()), keys.Lock("migration"), other, time.Second) }
	renew()
	go func() {
		defer close(stopped)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				renew()
			case <-stop:
				return
			}
		}
	}()
	before := readStore(t, db)
	_, err := migrate.Run(t.Context(), db, migrate.Options{Lease: migrate.MinLease})
	close(stop)
	<-stopped
	testkit.WantError(t, err, migrate.ErrRunning, "beside another migration")
	wantSame(t, readStore(t, db), before)
}

func TestADryRunChangesNothing(t *testing.T) {
	db := newOldStore(t)
	before := readStore(t, db)
	dry := testkit.Must(migrate.Run(t.Context(), db, migrate.Options{DryRun: true}))(t)
	wantSame(t, readStore(t, db), before)
	if real := run(t, db); fmt.Sprint(real) != fmt.Sprint(dry) || dry.Counts["rooms"] != 14 {
		t.Errorf("%v, dry %v", real, dry)
	}
}

// TestAStoreThatDoesNotAddUpIsNotTouched spoils one thing at a time.
func TestAStoreThatDoesNotAddUpIsNotTouched(t *testing.T) {
	db := newOldStore(t)
	wallet1, total, ledger := "{e:main}:wallet:1", keys.OldTotalsKey(), keys.OldLedgerKey()
	for name, c := range map[string]struct {
		spoil []any
		says  string
	}{
		"a wallet with more":           {[]any{"HINCRBY", wallet1, "free:GOLD", 1}, "wallet:1"},
		"more held than in rooms":      {[]any{"HINCRBY", wallet1, "held:GOLD", 1}, "held stakes"},
		"totals that are others":       {[]any{"HINCRBY", total, "minted:GOLD", 1}, "all games, GOLD, minted"},
		"a ledger that lost an entry":  {[]any{"XDEL", ledger, "12-0"}, "entry 13-0"},
		"a ledger that lost its last":  {[]any{"XDEL", ledger, "67-0"}, "entries"},
		"lines that lost one":          {[]any{"XDEL", "{e:main}:wallet:1:lines", "2-0"}, "wallet:1"},
		"a player without a game":      {[]any{"HDEL", keys.User(2), "game"}, "player 2"},
		"a player who is gone":         {[]any{"DEL", keys.User(5)}, "player 5"},
		"an unknown field of a wallet": {[]any{"HSET", wallet1, "bonus", 1}, "bonus"},
		"an unknown key":               {[]any{"SET", "{e:main}:jackpot", 1}, "{e:main}:jackpot"},
		"an unknown token":             {[]any{"DEL", "{e:main}:token:GEM"}, "GEM"},
		"a node that sweeps":           {[]any{"SET", "{l:rooms:r1}:lock", "x"}, "older release"},
	} {
		t.Run(name, func(t *testing.T) {
			reload(t, db)
			testkit.Check(t, db.Client.Do(t.Context(), c.spoil...).Err())
			before := readStore(t, db)
			_, err := migrate.Run(t.Context(), db, migrate.Options{})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error does not say %q: %v", c.says, err)
			}
			wantSame(t, readStore(t, db), before)
		})
	}
}

// TestANodeThatStillRunsIsNoticed changes the old store while it is migrated. The error comes
// before anything is removed, and the next migration ends well when the change is undone.
func TestANodeThatStillRunsIsNoticed(t *testing.T) {
	db := newOldStore(t)
	commands, change := map[string]int{}, func(string) {}
	db.Client.AddHook(visitor{func(cmd redis.Cmder) {
		name := cmd.Name()
		if name == "xrange" && cmd.Args()[1] == keys.OldLedgerKey() {
			name = "read the ledger"
		}
		commands[name]++
		change(fmt.Sprint(name, " ", commands[name]))
	}})
	for name, c := range map[string]struct {
		at       string
		do, undo []any
		says     string
	}{
		"a player buys after the keys were written": {
			"scan 6",
			[]any{"HINCRBY", "{e:main}:inventory:1", 1, 1},
			[]any{"HINCRBY", "{e:main}:inventory:1", 1, -1},
			"is not what the old keys say",
		},
		"money moves before the ledger is closed": {
			"read the ledger 6",
			[]any{"HINCRBY", keys.OldTotalsKey(), "seq", 1},
			[]any{"HINCRBY", keys.OldTotalsKey(), "seq", -1},
			"money moved",
		},
		"a new wallet has more than the old one": {
			"scan 1",
			[]any{"HSET", keys.Wallet(1, 1), "SILVER", "1|0"},
			[]any{"HDEL", keys.Wallet(1, 1), "SILVER"},
			keys.Wallet(1, 1) + " is not what the old keys say",
		},
		"a new ledger has more than the old one": {
			"read the ledger 6",
			[]any{"RPUSH", keys.Ledger(1), "more"},
			[]any{"RPOP", keys.Ledger(1)},
			keys.Ledger(1) + " is not what the old keys say",
		},
	} {
		t.Run(name, func(t *testing.T) {
			change = func(string) {}
			reload(t, db)
			old := readStore(t, db)
			clear(commands)
			changed := false
			change = func(at string) {
				if at != c.at || changed {
					return
				}
				changed = true
				testkit.Report(t, db.Client.Do(t.Context(), c.do...).Err())
			}
			_, err := migrate.Run(t.Context(), db, migrate.Options{})
			if err == nil || !strings.Contains(err.Error(), c.says) || !changed {
				t.Errorf("changed: %v; the error does not say %q: %v", changed, c.says, err)
			}
			change = func(string) {}
			testkit.Check(t, db.Client.Do(t.Context(), c.undo...).Err())
			after := readStore(t, db)
			for name, value := range old {
				if strings.HasPrefix(name, "{e:main}:") && after[name] != value {
					t.Errorf("%s:\n got %s\nwant %s", name, after[name], value)
				}
			}
			run(t, db)
			wantBalanced(t, db)
		})
	}
}

func TestAStoreOfAnotherLayoutIsNotMigrated(t *testing.T) {
	for layout, wantDone := range map[string]bool{"3": true, "7": false, "": false} {
		db := redistest.Single(t)
		if layout != "" {
			db.Client.HSet(t.Context(), keys.Meta(), keys.MetaLayoutField, layout)
		}
		r, err := migrate.Run(t.Context(), db, migrate.Options{})
		if r.WasDone != wantDone || (err == nil) != wantDone {
			t.Errorf("layout %q: %+v, %v", layout, r, err)
		}
	}
}
