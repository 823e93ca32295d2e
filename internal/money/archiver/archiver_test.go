package archiver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/archiver"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const game = moneytest.Game

// Small objects, so that a test fills many.
var (
	smallSizes = archive.Sizes{Entries: 10, Lines: 5, Checkpoint: 40}
	smallKeep  = archiver.Retention{Entries: 7, Lines: 8}
)

func openArchive(t *testing.T, dir string) *archive.Archive {
	t.Helper()
	a := testkit.Must(archive.Open("file://"+dir, archive.S3Options{}))(t)
	return a.WithSizes(smallSizes)
}

type auditor = audit.Service

// node is a node with an archive.
type node struct {
	*wallet.Service
	*auditor
	ledgers  *ledgerstore.Store
	archiver *archiver.Service
}

func newNode(db *redisdb.DB, a *archive.Archive, o archiver.Options) node {
	ledgers := ledgerstore.New(db, a)
	s := wallet.New(db, moneytest.Players{}, wallet.Options{Ledgers: ledgers})
	return node{s, audit.New(db, ledgers, s), ledgers, archiver.New(db, ledgers, o)}
}

// newArchiving returns a node with an archive in a folder.
func newArchiving(t *testing.T, db *redisdb.DB, dir string) node {
	t.Helper()
	moneytest.MakeGames(db)
	return newNode(db, openArchive(t, dir), archiver.Options{Keep: smallKeep})
}

// Run runs the background work of a node.
func (n node) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.Service.Run(ctx) })
	group.Go(func() error { return n.archiver.Run(ctx) })
	return group.Wait()
}

func archiveGame(t *testing.T, s node) {
	t.Helper()
	testkit.Check(t, s.archiver.Archive(t.Context(), game))
}

// wantBalanced fails the test unless both reports are balanced.
func wantBalanced(t *testing.T, s node) {
	t.Helper()
	if r, err := s.Audit(t.Context(), game); err != nil || !r.Balanced {
		t.Fatalf("the quick report: %+v, %v", r, err)
	}
	if d, err := s.AuditDeep(t.Context(), game); err != nil || !d.Balanced {
		t.Fatalf("the deep report: %+v, %v", d, err)
	}
}

// wantBase fails the test unless so many entries have left the store.
func wantBase(t *testing.T, db *redisdb.DB, want int64) {
	t.Helper()
	base, err := db.Client.Get(t.Context(), keys.LedgerBase(game)).Int64()
	if want == 0 && err != nil {
		return
	}
	if err != nil || base != want {
		t.Fatalf("%d entries have left the store, %v; want %d", base, err, want)
	}
}

// wantAllLines reads the player's whole ledger, page by page, and expects the lines from n to 1,
// each of 1 unit.
func wantAllLines(t *testing.T, s node, userID, n int64, limits ...int) {
	t.Helper()
	for _, limit := range limits {
		for _, code := range []string{"", "GOLD"} {
			next := n
			for before := int64(0); ; {
				page := testkit.Must(s.Ledger(t.Context(), game, userID,
					wallet.LedgerQuery{TokenCode: code, BeforeLine: before, Limit: limit}))(t, "%d a page, before %d", limit, before)
				for _, l := range page.Lines {
					if l.ID != next || l.BalanceAfterUnits != wallet.Units(next) {
						t.Fatalf("%d a page: line %d with the balance %s; want line %d", limit, l.ID, l.BalanceAfterUnits, next)
					}
					next--
				}
				if before = page.NextBefore; before == 0 {
					break
				}
			}
			if next != 0 {
				t.Fatalf("%d a page: the lines end above %d", limit, next)
			}
		}
	}
}

func TestOldEntriesAndLinesLeaveTheStoreAndAreRead(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		dir := t.TempDir()
		s := newArchiving(t, db, dir)
		moneytest.CreateToken(t, s.Service, "GOLD", 0)
		for n := range int64(93) {
			moneytest.Credit(t, s.Service, 1, "GOLD", "1")
			if n%4 == 0 {
				moneytest.Credit(t, s.Service, 2, "GOLD", "1")
			}
			archiveGame(t, s)
		}
		wantBase(t, db, 110) // of 117, as many whole segments as leave 7
		if left := db.Client.LLen(t.Context(), keys.WalletLines(game, 1)).Val(); left != 8 {
			t.Errorf("%d lines are left", left)
		}
		wantAllLines(t, s, 1, 93, 1, 3, 5, 13, 100)
		wantAllLines(t, s, 2, 24, 2, 100)
		for _, limit := range []int{1, 4, 10, 100} {
			var ids []int64
			for _, e := range moneytest.ReadLedger(t, s.Service, limit) {
				ids = append(ids, e.ID)
			}
			want := make([]int64, 117)
			for i := range want {
				want[i] = int64(117 - i)
			}
			if !slices.Equal(ids, want) {
				t.Errorf("%d entries a page: %v", limit, ids)
			}
		}
		wantBalanced(t, s)
		d, err := s.AuditDeep(t.Context(), game)
		if err != nil || d.Entries != 37 { // after the checkpoint at entry 80
			t.Errorf("replayed %d entries, %v", d.Entries, err)
		}
		full, err := s.AuditFromFirstEntry(t.Context(), game)
		if err != nil || !full.Balanced || full.Entries != 117 {
			t.Errorf("replayed %d entries: %+v, %v", full.Entries, full, err)
		}

		// What a checkpoint sums up is not read for the deep audit.
		first := filepath.Join(dir, "game-1", "ledger", "000000000000001")
		testkit.Check(t, os.WriteFile(first, []byte("?"), 0o600))
		wantBalanced(t, s)
		testkit.Fails(s.AuditFromFirstEntry(t.Context(), game))(
			t, apierror.StoreUnavailable, "the full audit of a damaged archive")
		r, err := s.VerifyLedger(t.Context(), game, func(int64) {})
		if err != nil || len(r.Problems) == 0 {
			t.Errorf("the verification of a damaged archive: %+v, %v", r, err)
		}
	})
}

func wantVerified(t *testing.T, s node) audit.LedgerReport {
	t.Helper()
	r, err := s.VerifyLedger(t.Context(), game, func(int64) {})
	if err != nil || len(r.Problems) > 0 {
		t.Fatalf("the ledger is not whole: %+v, %v", r, err)
	}
	return r
}

// openAgain opens the store of a server once more, as another node does.
func openAgain(t *testing.T, server *redistest.Server) *redisdb.DB {
	t.Helper()
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// A node dies before each of its commands to the store, and others look on and go on.
func TestACrashAtAnyStepLeavesNoGapAndNoDouble(t *testing.T) {
	server, dir := redistest.StartForTest(t), t.TempDir()
	db := openAgain(t, server)
	s := newArchiving(t, db, dir)
	moneytest.CreateToken(t, s.Service, "GOLD", 0)
	lines := int64(0)
	add := func(n int) {
		for range n {
			moneytest.Credit(t, s.Service, 1, "GOLD", "1")
			lines++
		}
	}
	add(60)
	crashes := 0
	for step := 1; ; step++ {
		dying := openAgain(t, server)
		commands := 0
		redistest.FailCommands(dying, func() bool { commands++; return commands >= step })
		err := newNode(dying, openArchive(t, dir), archiver.Options{Keep: smallKeep}).archiver.Archive(t.Context(), game)
		if err == nil {
			break
		}
		if !errors.Is(err, apierror.StoreUnavailable) {
			t.Fatalf("step %d: %v", step, err)
		}
		crashes++
		wantAllLines(t, newArchiving(t, db, dir), 1, lines, 9)
		wantVerified(t, newArchiving(t, db, dir))
		add(3)
	}
	if crashes < 10 {
		t.Errorf("the node died %d times only", crashes)
	}
	archiveGame(t, s)
	wantAllLines(t, s, 1, lines, 9, 100)
	if entries := moneytest.ReadLedger(t, s.Service, 100); int64(len(entries)) != lines {
		t.Errorf("%d entries; want %d", len(entries), lines)
	}
	wantVerified(t, s)
	wantBalanced(t, s)
}

// wantUntouched fails the test unless an attempt to archive fails and removes nothing.
func wantUntouched(t *testing.T, db *redisdb.DB, s node, base int64) error {
	t.Helper()
	err := s.archiver.Archive(t.Context(), game)
	if err == nil {
		t.Fatal("it was archived")
	}
	wantBase(t, db, base)
	return err
}

func TestNothingIsRemovedThatTheArchiveDoesNotHave(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		dir := t.TempDir()
		s := newArchiving(t, db, dir)
		moneytest.CreateToken(t, s.Service, "GOLD", 0)
		fill := func(n int) {
			for range n {
				moneytest.Credit(t, s.Service, 1, "GOLD", "1")
			}
		}
		fill(30)
		archiveGame(t, s)
		wantBase(t, db, 20)

		// The disk is not mounted: money goes on.
		testkit.Check(t, os.Rename(dir, dir+".away"))
		fill(20)
		wantUntouched(t, db, s, 20)
		wantUntouched(t, db, newArchiving(t, db, dir), 20) // which knows no segment
		reader := audit.New(db, ledgerstore.New(db, nil), s)
		if r, err := reader.Audit(t.Context(), game); err != nil || !r.Balanced {
			t.Errorf("%+v, %v", r, err)
		}
		testkit.Fails(reader.AuditDeep(t.Context(), game))(t, apierror.StoreUnavailable, "a recount without the archive")
		// Another disk is there instead: it lacks the segments before.
		testkit.Check(t, os.Mkdir(dir, 0o700))
		testkit.WantError(t, wantUntouched(t, db, newArchiving(t, db, dir), 20), archive.ErrNotFound, "an empty archive")
		testkit.Check(t, errors.Join(os.Remove(dir), os.Rename(dir+".away", dir)))

		// The archive has another segment than the store removed.
		sum := db.Client.HGet(t.Context(), keys.LedgerArchive(game), keys.LedgerArchiveSumField).Val()
		db.Client.HSet(t.Context(), keys.LedgerArchive(game), keys.LedgerArchiveSumField, "other")
		testkit.WantError(t, wantUntouched(t, db, newArchiving(t, db, dir), 20), archive.ErrConflict, "another history")
		db.Client.HSet(t.Context(), keys.LedgerArchive(game), keys.LedgerArchiveSumField, sum)

		// The totals are not the sums of the ledger: the entries are evidence.
		moneytest.AddUnits(t, db, keys.Totals(game), "house:GOLD", 1)
		wantUntouched(t, db, newArchiving(t, db, dir), 20)
		moneytest.AddUnits(t, db, keys.Totals(game), "house:GOLD", -1)

		archiveGame(t, s)
		wantBase(t, db, 40)
		wantAllLines(t, s, 1, 50, 9)
		wantVerified(t, s)
	})
}

// A store without its newest writes, as after a failover, has other entries under the same numbers.
func TestEntriesOfAnotherHistoryAreNotArchived(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		dir := t.TempDir()
		s := newArchiving(t, db, dir)
		moneytest.CreateToken(t, s.Service, "GOLD", 0)
		for range 17 {
			moneytest.Credit(t, s.Service, 1, "GOLD", "1")
		}
		entries := testkit.Must(db.Client.LRange(t.Context(), keys.Ledger(game), 0, -1).Result())(t)
		lost := slices.Clone(entries[:10])
		lost[9] = "1|lost|GOLD|test|op|m:-1;w2:1"
		testkit.Must(openArchive(t, dir).WriteSegment(t.Context(), game, archive.Segment{}, lost))(t)
		testkit.WantError(t, wantUntouched(t, db, s, 0), archive.ErrConflict)
		rewound, err := archiver.Rewind(t.Context(), s.ledgers, "test")
		if err != nil || rewound.Segments != 1 {
			t.Fatalf("%+v, %v", rewound, err)
		}
		archiveGame(t, s)
		wantBase(t, db, 10)
		wantVerified(t, s)
	})
}

// Two archivers, money and readers at a time.
func TestManyArchiversUnderLoad(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		dir := t.TempDir()
		s := newArchiving(t, db, dir)
		moneytest.CreateToken(t, s.Service, "GOLD", 0)
		const players, each = 4, 150
		var money, others errgroup.Group
		for userID := range int64(players) {
			money.Go(func() error {
				for range each {
					in := wallet.CreditInput{UserID: userID + 1, TokenCode: "GOLD", Amount: "1", Reason: "test"}
					if _, err := s.Credit(t.Context(), moneytest.Operator, in, idempotency.Receipt{}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		done := make(chan struct{})
		until := func(do func() error) {
			others.Go(func() error {
				for {
					select {
					case <-done:
						return nil
					default:
						if err := do(); err != nil {
							return err
						}
					}
				}
			})
		}
		for range 2 {
			node := newArchiving(t, db, dir)
			until(func() error { return node.archiver.Archive(t.Context(), game) })
		}
		until(func() error {
			r, err := s.AuditDeep(t.Context(), game)
			if err == nil && !r.Balanced {
				err = fmt.Errorf("%+v", r)
			}
			return err
		})
		until(func() error {
			page, err := s.Ledger(t.Context(), game, 1, wallet.LedgerQuery{Limit: 30})
			for i, l := range page.Lines {
				if l.ID != page.Lines[0].ID-int64(i) || l.BalanceAfterUnits != wallet.Units(l.ID) {
					return fmt.Errorf("line %d of the page is %+v", i, l)
				}
			}
			return err
		})
		err := money.Wait()
		close(done)
		testkit.Check(t, errors.Join(err, others.Wait()))
		archiveGame(t, s)
		wantBase(t, db, players*each-10)
		for userID := range int64(players) {
			wantAllLines(t, s, userID+1, each, 40)
		}
		wantVerified(t, s)
		wantBalanced(t, s)
	})
}

// The elected node does it by itself, and reports.
func TestNodesArchiveByThemselves(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		dir := t.TempDir()
		s := newArchiving(t, db, dir)
		moneytest.CreateToken(t, s.Service, "GOLD", 0)
		for range 60 {
			moneytest.Credit(t, s.Service, 1, "GOLD", "1")
		}
		ctx, stop := context.WithCancel(t.Context())
		var nodes errgroup.Group
		nodes.Go(func() error { return s.Run(ctx) })
		nodes.Go(func() error { return newArchiving(t, db, dir).Run(ctx) })
		redistest.Eventually(t, "50 entries have left, and a checkpoint is there", func() bool {
			numbers, _ := openArchive(t, dir).Checkpoints(t.Context(), game)
			return db.Client.Get(t.Context(), keys.LedgerBase(game)).Val() == "50" && slices.Equal(numbers, []int64{40})
		})
		if status := s.archiver.Status(); !status.OK {
			t.Errorf("%+v", status)
		}
		stop()
		testkit.Report(t, nodes.Wait())
	})
}

// What a store keeps does not grow with the years: at the size of production, and with lines of
// players who get them without a posting.
func TestTheStoreStaysAsLargeAsItIs(t *testing.T) {
	server := redistest.StartForTest(t)
	db := openAgain(t, server)
	moneytest.MakeGames(db)
	a := testkit.Must(archive.Open("file://"+t.TempDir(), archive.S3Options{}))(t)
	s := newNode(db, a, archiver.Options{})
	moneytest.CreateToken(t, s.Service, "GOLD", 0)
	const cycles, entriesEach = 12, 2000
	var sizes []int64
	seq := 0
	for cycle := range cycles {
		testkit.Must(db.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for range entriesEach { // as wallet_credit writes them
				seq++
				p.RPush(t.Context(), keys.Ledger(game), "1700000000000|abcdefgh|GOLD|reward|op|m:-1;w1:1")
				p.RPush(t.Context(), keys.WalletLines(game, 1),
					fmt.Sprintf("%d-abcdefgh|user.balance|1700000000000|GOLD|0|1|%d|0|reward|op", seq, seq))
				p.HSet(t.Context(), keys.Wallet(game, 1), "GOLD", fmt.Sprintf("%d|0", seq), keys.WalletSeqField, seq)
			}
			p.HIncrBy(t.Context(), keys.Totals(game), "minted:GOLD", entriesEach)
			return nil
		}))(t)
		testkit.Check(t, s.archiver.Archive(t.Context(), game))
		info := testkit.Must(redistest.ReadInfo(t.Context(), redistest.Dial(t, server)))(t)
		if cycle > 1 { // the first ones fill what stays
			sizes = append(sizes, int64(info["used_memory_dataset"]))
		}
		t.Logf("after %d entries: %d bytes of data, %d entries and %d lines in the store", seq,
			int64(info["used_memory_dataset"]), db.Client.LLen(t.Context(), keys.Ledger(game)).Val(),
			db.Client.LLen(t.Context(), keys.WalletLines(game, 1)).Val())
	}
	if smallest, largest := slices.Min(sizes), slices.Max(sizes); largest-smallest > 300_000 {
		t.Errorf("the store has from %d to %d bytes", smallest, largest)
	}
	wantBalanced(t, s)
	wantAllLines(t, s, 1, int64(seq), 100)
}

// The replication stands still while entries go to the archive, and the replica is promoted: it has
// neither what was archived nor that it left the store.
func TestAnArchiveThatIsAheadOfTheStoreAfterAFailoverSaysSo(t *testing.T) {
	primary := redistest.StartForTest(t, "--repl-diskless-sync-delay", "0")
	link, front := redistest.StartProxy(t, primary.Addr), redistest.StartProxy(t, primary.Addr)
	replica := redistest.StartReplica(t, link.Addr)
	db := testkit.Must(redisdb.Open("redis://" + front.Addr))(t)
	t.Cleanup(func() { _ = db.Close() })
	dir := t.TempDir()
	s := newArchiving(t, db, dir)
	moneytest.CreateToken(t, s.Service, "GOLD", 0)
	fill := func(n int, amount wallet.AmountInput) {
		for range n {
			moneytest.Credit(t, s.Service, 1, "GOLD", amount)
		}
	}
	fill(30, "1")
	archiveGame(t, s)
	wantBase(t, db, 20)
	redistest.Eventually(t, "the replica has it", func() bool {
		return redistest.Dial(t, replica).Get(t.Context(), keys.LedgerBase(game)).Val() == "20"
	})
	link.Cut()
	fill(30, "1")
	archiveGame(t, s)
	wantBase(t, db, 50)

	testkit.Check(t, redistest.Dial(t, replica).ReplicaOf(t.Context(), "NO", "ONE").Err())
	front.Retarget(replica.Addr)
	redistest.Eventually(t, "the replica serves", func() bool {
		return db.Client.Get(t.Context(), keys.LedgerBase(game)).Val() == "20"
	})
	fill(3, "2")
	newComparing := func() node {
		return newNode(db, openArchive(t, dir), archiver.Options{
			Keep: smallKeep, LostIn: func() map[int64]int64 { return map[int64]int64{game: 2} },
		})
	}
	node := newComparing()
	wantStatus := func(text string) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		var running errgroup.Group
		running.Go(func() error { return node.Run(ctx) })
		redistest.Eventually(t, "the archive "+text, func() bool {
			return strings.Contains(node.archiver.Status().Detail, text)
		})
		stop()
		testkit.Report(t, running.Wait())
	}
	wantStatus(`has ledger entries of 1 games that the store lost: stop the nodes and run "parlor ledger rewind"`)
	r, err := node.VerifyLedger(t.Context(), game, func(int64) {})
	if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "parlor ledger rewind") {
		t.Errorf("the verification: %+v, %v", r, err)
	}
	// It stays as it is, also when the store has as many entries again.
	fill(40, "2")
	testkit.WantError(t, wantUntouched(t, db, s, 20), archive.ErrConflict)
	segment, err := openArchive(t, dir).ReadSegment(t.Context(), game, 31)
	if err != nil || segment.Last != 40 {
		t.Errorf("%+v, %v", segment, err)
	}
	wantBalanced(t, node)

	rewound, err := archiver.Rewind(t.Context(), newArchiving(t, db, dir).ledgers, "test")
	if err != nil || rewound.Segments != 3 || rewound.Checkpoints != 1 || rewound.Lines == 0 {
		t.Errorf("%+v, %v", rewound, err)
	}
	s, node = newArchiving(t, db, dir), newComparing()
	wantStatus("takes what leaves the store")
	archiveGame(t, s)
	wantBase(t, db, 60)
	wantVerified(t, s)
	wantBalanced(t, s)
}
