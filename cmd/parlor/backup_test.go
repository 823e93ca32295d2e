package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/archiver"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/backup"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
	"golang.org/x/sync/errgroup"
)

const drillGame = 1

// drill is a store with an archive and money that moves.
type drill struct {
	db *redisdb.DB
	books
	archiver *archiver.Service
}

func openDrill(t *testing.T, url, archiveURL string) drill {
	t.Helper()
	ledgerArchive := testkit.Must(archive.Open(archiveURL, archive.S3Options{}))(t)
	db := testkit.Must(redisdb.Open(url))(t)
	t.Cleanup(func() { _ = db.Close() })
	b := newBooks(db, ledgerArchive, domaintest.NewPlayers(drillGame))
	return drill{db, b, archiver.New(db, b.ledgers, archiver.Options{})}
}

// play credits so many times, eight players at a time, until stop ends.
func (d drill) play(t *testing.T, credits int, stop context.Context) {
	t.Helper()
	const players = 8
	var group errgroup.Group
	for userID := range int64(players) {
		group.Go(func() error {
			for range credits / players {
				if stop.Err() != nil {
					return nil
				}
				_, err := d.wallets.Credit(t.Context(), domaintest.Operator, wallet.CreditInput{
					UserID: userID + 1, TokenCode: "GOLD", Amount: "1.5", Reason: "play",
				}, idempotency.Receipt{})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	testkit.Report(t, group.Wait())
}

func (d drill) last(t *testing.T) int64 {
	t.Helper()
	return testkit.Must(d.ledgers.LastEntry(t.Context(), drillGame))(t)
}

// base returns how many entries have left the store.
func (d drill) base(t *testing.T) int64 {
	t.Helper()
	return testkit.Must(d.db.Client.Get(t.Context(), keys.LedgerBase(drillGame)).Int64())(t)
}

func (d drill) wantBase(t *testing.T, want int64) {
	t.Helper()
	if n := d.base(t); n != want {
		t.Fatalf("%d entries have left the store; want %d", n, want)
	}
}

// The whole way of a disaster: play, a backup under load, more play, the loss of the server, a
// restore, and a ledger that goes on.
func TestADrillOfBackupAndRestore(t *testing.T) {
	server := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "everysec")
	archiveDir, copyDir := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	archiveURL := "file://" + archiveDir
	t.Setenv("PARLOR_REDIS_URL", server.URL())
	t.Setenv("PARLOR_ARCHIVE", archiveURL)
	d := openDrill(t, server.URL(), archiveURL)
	d.fill(t, 3200)
	forever := context.Background()
	testkit.Check(t, d.archiver.Archive(t.Context(), drillGame))
	d.wantBase(t, 2000)

	underLoad, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { d.play(t, 1_000_000, underLoad); close(ended) }()
	must(t, "backup", "--to", copyDir)
	stop()
	<-ended
	m, err := backup.Read(copyDir)
	if err != nil || len(m.Ledgers) != 1 || m.Ledgers[0].First < 3200 || m.Ledgers[0].Last <= m.Ledgers[0].First {
		t.Fatalf("%+v, %v", m, err)
	}
	d.play(t, 4000, forever) // so that the archive gets what the backup lacks
	testkit.Check(t, d.archiver.Archive(t.Context(), drillGame))
	before := d.last(t)

	server.Kill()
	for _, name := range []string{"appendonlydir", "dump.rdb"} {
		testkit.Check(t, os.RemoveAll(filepath.Join(server.Dir, name)))
	}
	must(t, "restore", "--from", copyDir, "--data", server.Dir)
	testkit.Check(t, server.Restart())

	d = openDrill(t, server.URL(), archiveURL)
	restored := d.last(t)
	if restored < m.Ledgers[0].First || restored > m.Ledgers[0].Last || restored >= before {
		t.Errorf("the restored ledger ends with entry %d; the backup was made from %d to %d", restored,
			m.Ledgers[0].First, m.Ledgers[0].Last)
	}
	d.wantBase(t, 2000)
	must(t, "audit", "--deep")
	must(t, "audit", "--full")

	// Without a rewind the archive still has the history that was lost, and takes no other one.
	d.play(t, 3200, forever)
	testkit.WantError(t, d.archiver.Archive(t.Context(), drillGame), archive.ErrConflict, "another history was archived")
	if base := d.base(t); base > restored { // what both histories have may leave
		t.Errorf("%d entries have left the store; the histories part after %d", base, restored)
	}
	if out := must(t, "ledger", "rewind"); strings.Contains(out, `"segments":0`) {
		t.Errorf("nothing was set aside: %s", out)
	}
	d = openDrill(t, server.URL(), archiveURL)
	testkit.Check(t, d.archiver.Archive(t.Context(), drillGame))
	must(t, "audit", "--deep")
	if out := must(t, "ledger", "verify"); !strings.Contains(out, `"problems":[]`) {
		t.Error(out)
	}
	if base := d.base(t); base+3000 <= d.last(t) {
		t.Errorf("%d entries have left the store of %d", base, d.last(t))
	}

	// The export has every entry once, from the archive and from the store.
	last := d.last(t)
	jsonl := strings.Split(strings.TrimSpace(must(t, "ledger", "export", "--game", "1")), "\n")
	if int64(len(jsonl)) != last || !strings.HasPrefix(jsonl[0], `{"gameId":1,"id":1,"at":"`) ||
		!strings.Contains(jsonl[0], `"delta":1.5,"deltaAmount":"150"`) {
		t.Errorf("%d lines for %d entries, the first %s", len(jsonl), last, jsonl[0])
	}
	table := strings.Split(strings.TrimSpace(must(t, "ledger", "export", "--game", "1", "--from", "1999", "--to", "2002",
		"--csv")), "\n")
	if len(table) != 1+4*2 || table[0] != strings.Join(csvHeader, ",") || !strings.HasPrefix(table[8], "1,2002,") {
		t.Errorf("%q", table)
	}

	// verify finds what is wrong.
	damaged := filepath.Join(archiveDir, "game-1", "ledger", "000000000000001")
	testkit.Check(t, os.WriteFile(damaged, []byte("?"), 0o600))
	if status, out, _ := command(t, "ledger", "verify"); status != 1 || !strings.Contains(out, "damaged") {
		t.Errorf("a damaged segment: status %d, %s", status, out)
	}
}

// fill makes an installation with a token and money that moved in the store of a drill.
func (d drill) fill(t *testing.T, credits int) {
	t.Helper()
	createInstallation(t, d.db)
	testkit.Check(t, d.db.Client.Set(t.Context(), keys.GameIDCounter(), 1, 0).Err())
	testkit.Must(d.wallets.CreateToken(t.Context(), domaintest.Operator, wallet.TokenDefinition{
		Code: "GOLD", Name: "Gold", Metadata: wallet.Metadata{AssetName: "676f", PolicyID: "AB", Decimals: "2"},
	}))(t)
	d.play(t, credits, context.Background())
}

// startDrillCluster starts a Cluster whose servers end with the test.
func startDrillCluster(t *testing.T) (url string, servers []*redistest.Server) {
	t.Helper()
	url, servers, err := redistest.StartCluster("--appendonly", "yes", "--appendfsync", "always")
	for _, s := range servers {
		t.Cleanup(s.Remove)
	}
	testkit.Check(t, err)
	return url, servers
}

// TestABackupOfAClusterIsRestoredIntoANewOne follows docs/deployment.md: the new Cluster gets its
// slots while it is empty, then each of its servers the copy of them.
func TestABackupOfAClusterIsRestoredIntoANewOne(t *testing.T) {
	url, servers := startDrillCluster(t)
	copyDir, archiveURL := filepath.Join(t.TempDir(), "copy"), "file://"+t.TempDir()
	setRequired(t, url)
	t.Setenv("PARLOR_ARCHIVE", archiveURL)
	d := openDrill(t, url, archiveURL)
	d.fill(t, 400)
	const others = 300 // keys, over all slots
	for i := range others {
		testkit.Check(t, d.db.Client.Set(t.Context(), fmt.Sprint("other-", i), i, 0).Err())
	}
	must(t, "backup", "--to", copyDir)
	balances, last := d.db.Client.HGetAll(t.Context(), keys.Wallet(drillGame, 3)).Val(), d.last(t)
	for _, s := range servers {
		s.Kill()
	}

	url, servers = startDrillCluster(t)
	t.Setenv("PARLOR_REDIS_URL", url)
	d = openDrill(t, url, archiveURL)
	masters, err := d.db.Masters(t.Context())
	if err != nil || len(masters) != 3 {
		t.Fatalf("%v, %v", masters, err)
	}
	for _, master := range masters {
		i := slices.IndexFunc(servers, func(s *redistest.Server) bool { return s.Addr == master.Addr })
		server := servers[i]
		server.Kill()
		restore := []string{"restore", "--from", copyDir, "--slots", master.Slots, "--data", server.Dir}
		if status, _, _ := command(t, restore...); status == 0 {
			t.Error("a data folder that is in use is overwritten")
		}
		testkit.Check(t, os.RemoveAll(filepath.Join(server.Dir, "appendonlydir")))
		must(t, restore...)
	}
	for _, s := range servers {
		testkit.Check(t, s.Restart())
	}
	for _, s := range servers {
		redistest.Eventually(t, "a server of the new Cluster serves", func() bool {
			return strings.Contains(redistest.Dial(t, s).ClusterInfo(t.Context()).Val(), "cluster_state:ok")
		})
	}
	d = openDrill(t, url, archiveURL)
	if got := d.last(t); got != last {
		t.Errorf("the ledger has %d entries; want %d", got, last)
	}
	if got := d.db.Client.HGetAll(t.Context(), keys.Wallet(drillGame, 3)).Val(); !maps.Equal(got, balances) {
		t.Errorf("a wallet has %v; want %v", got, balances)
	}
	for i := range others {
		if got := d.db.Client.Get(t.Context(), fmt.Sprint("other-", i)).Val(); got != fmt.Sprint(i) {
			t.Fatalf("key %d has %q", i, got)
		}
	}
	must(t, "audit", "--deep")
	must(t, "ledger", "verify")
	node := nodetest.Start(t, url, "PARLOR_ARCHIVE="+archiveURL)
	audit := node.Must(t, 200, "GET", "/api/v1/admin/audit", nodetest.AdminKey, nil)
	if audit.Body["balanced"] != true {
		t.Errorf("the audit returns %s", audit)
	}
	d.play(t, 8, context.Background())
}

func TestLedgerTailFollows(t *testing.T) {
	server := redistest.StartForTest(t)
	archiveURL := "file://" + t.TempDir()
	d := openDrill(t, server.URL(), archiveURL)
	domaintest.NewMoney(t, d.db, d.wallets, drillGame, wallet.TokenDefinition{Code: "GOLD"})
	d.play(t, 16, t.Context())
	ctx, stop := context.WithCancel(t.Context())
	follows := make(chan struct{})
	out := &stopAfter{text: `"id":24,`, stop: stop, wrote: sync.OnceFunc(func() { close(follows) })}
	ended := make(chan error)
	go func() { ended <- followLedger(ctx, d.books, drillGame, 3, out) }()
	<-follows // it has printed the newest three
	d.play(t, 8, t.Context())
	testkit.Report(t, <-ended)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3+8 || !strings.Contains(lines[len(lines)-1], `"id":24,`) {
		t.Errorf("%q", lines)
	}
}

func TestTheCommandsOfTheLedgerReportWhatTheyNeed(t *testing.T) {
	store := redistest.StartForTest(t).URL()
	createInstallation(t, openDrill(t, store, "file://"+t.TempDir()).db)
	t.Setenv("PARLOR_REDIS_URL", store)
	for _, args := range [][]string{
		{"ledger", "export"},
		{"ledger", "export", "--game", "1", "--from", "0"},
		{"ledger", "verify", "--game", "-1"},
		{"ledger", "tail"},
		{"ledger", "rewind"},
		{"backup"},
		{"restore"},
		{"restore", "--from", t.TempDir()},
		{"restore", "--from", t.TempDir(), "--data", t.TempDir()},
	} {
		if status, _, stderr := command(t, args...); status != 1 || stderr == "" {
			t.Errorf("%v exits %d: %s", args, status, stderr)
		}
	}
	t.Setenv("PARLOR_ARCHIVE", "ftp://a")
	if status, _, stderr := command(t, "ledger", "verify"); status != 78 || !strings.Contains(stderr, "PARLOR_ARCHIVE") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
