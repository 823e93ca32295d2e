package wallet_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/archive"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/wallet"
)

// Small objects, so that a test fills many.
var (
	smallSizes = archive.Sizes{Entries: 10, Lines: 5, Checkpoint: 40}
	smallKeep  = wallet.Retention{Entries: 7, Lines: 8}
)

func openArchive(t *testing.T, dir string) *archive.Archive {
	t.Helper()
	a, err := archive.Open("file://"+dir, archive.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a.WithSizes(smallSizes)
}

// newArchiving returns a service with an archive in a folder.
func newArchiving(t *testing.T, db *redisdb.DB, dir string) *wallet.Service {
	t.Helper()
	makeGames(db)
	return wallet.New(db, players{}, wallet.Options{Archive: openArchive(t, dir), Keep: smallKeep})
}

func archiveGame(t *testing.T, s *wallet.Service) {
	t.Helper()
	if err := s.Archive(t.Context(), game); err != nil {
		t.Fatal(err)
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
func wantAllLines(t *testing.T, s *wallet.Service, userID, n int64, limits ...int) {
	t.Helper()
	for _, limit := range limits {
		for _, code := range []string{"", "GOLD"} {
			next := n
			for before := int64(0); ; {
				page, err := s.Ledger(t.Context(), game, userID,
					wallet.LedgerQuery{TokenCode: code, BeforeLine: before, Limit: limit})
				if err != nil {
					t.Fatalf("%d a page, before %d: %v", limit, before, err)
				}
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
		s := newArchiving(t, db, t.TempDir())
		createToken(t, s, "GOLD", 0)
		for n := range int64(93) {
			credit(t, s, 1, "GOLD", "1")
			if n%4 == 0 {
				credit(t, s, 2, "GOLD", "1")
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
			for _, e := range readLedger(t, s, limit) {
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
		full, err := s.AuditFull(t.Context(), game)
		if err != nil || !full.Balanced || full.Entries != 117 {
			t.Errorf("replayed %d entries: %+v, %v", full.Entries, full, err)
		}
	})
}

func wantVerified(t *testing.T, s *wallet.Service) wallet.LedgerReport {
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
	db, err := redisdb.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// A node dies before each of its commands to the store, and others look on and go on.
func TestACrashAtAnyStepLeavesNoGapAndNoDouble(t *testing.T) {
	server, dir := redistest.StartFor(t), t.TempDir()
	db := openAgain(t, server)
	s := newArchiving(t, db, dir)
	createToken(t, s, "GOLD", 0)
	lines := int64(0)
	add := func(n int) {
		for range n {
			credit(t, s, 1, "GOLD", "1")
			lines++
		}
	}
	add(60)
	crashes := 0
	for step := 1; ; step++ {
		dying := openAgain(t, server)
		commands := 0
		redistest.FailCommands(dying, func() bool { commands++; return commands >= step })
		err := newArchivingWithoutGames(dying, openArchive(t, dir)).Archive(t.Context(), game)
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
	if entries := readLedger(t, s, 100); int64(len(entries)) != lines {
		t.Errorf("%d entries; want %d", len(entries), lines)
	}
	wantVerified(t, s)
	wantBalanced(t, s)
}

func newArchivingWithoutGames(db *redisdb.DB, a *archive.Archive) *wallet.Service {
	return wallet.New(db, players{}, wallet.Options{Archive: a, Keep: smallKeep})
}
