package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/backup"
	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/spf13/cobra"
)

// createInstallation makes a store an installation, as the first node does.
func createInstallation(t *testing.T, db *redisdb.DB) {
	t.Helper()
	testkit.Check(t, db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 1}))
	testkit.Check(t, history.CreateInstallation(t.Context(), db))
}

// anyStoreCommands are the commands that open a store for which an empty one is right, with the
// reason.
var anyStoreCommands = map[string]string{
	"parlor serve":        "the first node makes the installation",
	"parlor dev":          "makes the installation",
	"parlor seed":         "makes the installation: TestSeedMakesAnInstallationOnlyInAStoreThatIsEmpty",
	"parlor config check": "opens no store",
	"parlor config show":  "shows what the servers promise, and reads no key",
}

// toolArgs are the arguments that commands need before they open the store.
var toolArgs = map[string]string{
	"parlor backup":             "--to {dir}",
	"parlor boards top":         "weekly --game 1",
	"parlor boards verify":      "--game 1",
	"parlor ledger export":      "--game 1",
	"parlor ledger tail":        "--game 1",
	"parlor store accept":       "--reason test",
	"parlor token":              "--game 1 --user 1",
	"parlor tournaments cancel": "1 --game 1 --reason test",
	"parlor tournaments list":   "--game 1",
	"parlor tournaments show":   "1 --game 1",
}

// storeCommands calls visit with every command that opens a store, by its flag.
func storeCommands(c *cobra.Command, visit func(c *cobra.Command)) {
	for _, child := range c.Commands() {
		storeCommands(child, visit)
	}
	if c.Runnable() && c.Flags().Lookup("redis-url") != nil {
		visit(c)
	}
}

const (
	emptyStore   = "the store has no installation"
	foreignStore = "the store has layout 999 and this release reads layout "
)

// TestEveryCommandRefusesAStoreThatIsNotItsOwn looks at all commands that there are: a new one that
// does not check its store fails here.
func TestEveryCommandRefusesAStoreThatIsNotItsOwn(t *testing.T) {
	empty, foreign := redistest.StartForTest(t), redistest.StartForTest(t)
	client := redistest.Dial(t, foreign)
	for key, fields := range map[string][]any{
		keys.Meta():          {keys.MetaInstallationField, "other", keys.MetaLayoutField, "999", keys.MetaEpochField, 1},
		keys.HistoryLosses(): {"1:1", "what another layout has"},
		keys.MoneyHalts():    {"x", "what another layout has"},
	} {
		testkit.Check(t, client.HSet(t.Context(), key, fields...).Err())
	}
	before := client.DBSize(t.Context()).Val()
	t.Setenv("PARLOR_SIGNING_KEY", testSigningKey)
	t.Setenv("PARLOR_ARCHIVE", "file://"+t.TempDir())
	seen := 0
	storeCommands(newRootCommand(), func(c *cobra.Command) {
		path := c.CommandPath()
		if anyStoreCommands[path] != "" {
			return
		}
		seen++
		for store, want := range map[string]string{empty.URL(): emptyStore, foreign.URL(): foreignStore} {
			text := strings.ReplaceAll(toolArgs[path], "{dir}", filepath.Join(t.TempDir(), "copy"))
			args := append(strings.Fields(strings.TrimPrefix(path, "parlor ")), strings.Fields(text)...)
			status, stdout, stderr := command(t, append(args, "--redis-url", store)...)
			if status != 1 || !strings.Contains(stdout+stderr, want) {
				t.Errorf("%v exits %d and prints %q; want 1 and %q (does it open the store by openToolStore? needs it arguments "+
					"in toolArgs?)", args, status, stdout+stderr, want)
			}
			if path == "parlor store status" || path == "parlor audit" {
				continue // they print it as their report
			}
			if stdout != "" {
				t.Errorf("%v prints %q", args, stdout)
			}
		}
	})
	if seen < 15 {
		t.Errorf("only %d commands were tried", seen)
	}
	if n := redistest.Dial(t, empty).DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys were written into the empty store", n)
	}
	if n := client.DBSize(t.Context()).Val(); n != before {
		t.Errorf("the other store has %d keys and had %d", n, before)
	}
	for path := range toolArgs {
		if c, _, err := newRootCommand().Find(strings.Fields(path)[1:]); err != nil || c.CommandPath() != path {
			t.Errorf("toolArgs has %s, which is no command", path)
		}
	}
}

func TestABackupOfAStoreThatIsNotOursMakesNoFolder(t *testing.T) {
	store := redistest.StartForTest(t).URL()
	to := filepath.Join(t.TempDir(), "copy")
	status, _, stderr := command(t, "backup", "--to", to, "--redis-url", store)
	if status != 1 || !strings.Contains(stderr, emptyStore) || !strings.Contains(stderr, "check PARLOR_REDIS_URL") {
		t.Errorf("it exits %d: %s", status, stderr)
	}
	if names, _ := filepath.Glob(to + "*"); len(names) > 0 {
		t.Errorf("it made %v", names)
	}
}

// The error for such a store says that a backup comes first.
func TestAStoreThatMustBeMigratedIsBackedUp(t *testing.T) {
	for _, layout := range []string{"1", "1>3", "1>3:remove"} {
		server := redistest.StartForTest(t)
		client := redistest.Dial(t, server)
		testkit.Check(t, client.HSet(t.Context(), keys.Meta(), keys.MetaLayoutField, layout).Err())
		to := filepath.Join(t.TempDir(), "copy")
		must(t, "backup", "--to", to, "--redis-url", server.URL())
		if m, err := backup.Read(to); err != nil || len(m.Masters) != 1 || len(m.Ledgers) != 0 {
			t.Errorf("layout %s: %+v, %v", layout, m, err)
		}
	}
}

func TestAStoreThatIsReadNeedsNoMigration(t *testing.T) {
	t.Setenv("PARLOR_SIGNING_KEY", testSigningKey)
	server := redistest.StartForTest(t)
	must(t, "seed", "--redis-url", server.URL())
	out := must(t, "upgrade", "migrate", "--redis-url", server.URL())
	if want := "which this release reads; there is nothing to migrate"; !strings.Contains(out, want) {
		t.Errorf("%q, want %q", out, want)
	}
}

func TestSeedMakesAnInstallationOnlyInAStoreThatIsEmpty(t *testing.T) {
	t.Setenv("PARLOR_SIGNING_KEY", testSigningKey)
	for name, fields := range map[string][]any{
		foreignStore: {keys.MetaInstallationField, "other", keys.MetaLayoutField, "999"},
		emptyStore:   {keys.MetaStoppedField, `{"cause":"empty"}`}, // by the nodes that knew it full
	} {
		server := redistest.StartForTest(t)
		client := redistest.Dial(t, server)
		testkit.Check(t, client.HSet(t.Context(), keys.Meta(), fields...).Err())
		status, _, stderr := command(t, "seed", "--redis-url", server.URL())
		if status != 1 || !strings.Contains(stderr, name) {
			t.Errorf("seed exits %d: %s; want %q", status, stderr, name)
		}
		if n := client.DBSize(t.Context()).Val(); n != 1 {
			t.Errorf("%d keys are in the store after seed", n)
		}
	}
	server := redistest.StartForTest(t)
	must(t, "seed", "--redis-url", server.URL(), "--room-shards", "4")
	meta := redistest.Dial(t, server).HGetAll(t.Context(), keys.Meta()).Val()
	if meta[keys.MetaInstallationField] == "" || meta[keys.MetaShardsField] != "4" || meta[keys.MetaEpochField] != "1" {
		t.Errorf("the record is %v", meta)
	}
	must(t, "audit", "--redis-url", server.URL())
	status, _, stderr := command(t, "audit", "--redis-url", server.URL(), "--game", "99")
	if status != 1 || !strings.Contains(stderr, "game_not_found") {
		t.Errorf("the audit of a game that is not there exits %d: %s", status, stderr)
	}
}

// auditReport is what the tests read of a report.
type auditReport struct {
	Balanced  *bool `json:"balanced"`
	SumsAgree bool  `json:"sumsAgree"`
	Stopped   []struct {
		GameID int64  `json:"gameId"`
		Cause  string `json:"cause"`
		Reason string `json:"reason"`
		At     string `json:"at"`
	} `json:"stopped"`
}

// wantAudits runs the audit in all its forms. It must exit 1, end with the verdict, and give the
// cause and the reason.
func wantAudits(t *testing.T, store, verdict, cause, reason string, more ...string) {
	t.Helper()
	for _, form := range []string{"", "--deep", "--full"} {
		args := append([]string{"audit", "--redis-url", store}, more...)
		if form != "" {
			args = append(args, form)
		}
		status, out, stderr := command(t, args...)
		if lines := strings.Split(strings.TrimSpace(out), "\n"); status != 1 || !strings.Contains(out, reason) ||
			!strings.HasPrefix(lines[len(lines)-1], verdict) {
			t.Errorf("%v exits %d; want the verdict %q and %q:\n%s%s", args, status, verdict, reason, out, stderr)
		}
		status, out, stderr = command(t, append(args, "--json")...)
		var report auditReport
		if err := wire.Unmarshal([]byte(out), &report); err != nil || status != 1 || report.Balanced == nil ||
			*report.Balanced || len(report.Stopped) != 1 || report.Stopped[0].Cause != cause ||
			!strings.Contains(report.Stopped[0].Reason, reason) || report.Stopped[0].At == "" ||
			report.SumsAgree == (verdict == "NOT AUDITED") {
			t.Errorf("%v --json exits %d: %v\n%s%s", args, status, err, out, stderr)
		}
	}
}

// TestTheAuditIsNotBalancedWhileNodesKnowOfMore has one store in each state in which the sums agree
// and money is not as it should be.
func TestTheAuditIsNotBalancedWhileNodesKnowOfMore(t *testing.T) {
	t.Setenv("PARLOR_SIGNING_KEY", testSigningKey)
	t.Setenv("PARLOR_ARCHIVE", "file://"+t.TempDir())
	server := redistest.StartForTest(t, "--appendonly", "yes")
	store, client := server.URL(), redistest.Dial(t, server)
	wantAudits(t, store, "NOT AUDITED", "no_installation", "the store has no installation")
	wantAudits(t, store, "NOT AUDITED", "no_installation", "the store has no installation", "--game", "1")
	must(t, "seed", "--redis-url", store)
	if out := must(t, "store", "status", "--redis-url", store); !strings.Contains(out, "goes on") {
		t.Error(out)
	}
	isBalanced := func(after string) {
		t.Helper()
		for _, form := range []string{"--json", "--json --deep", "--json --full", "--json --game=1"} {
			var report auditReport
			out := must(t, append([]string{"audit", "--redis-url", store}, strings.Fields(form)...)...)
			if err := wire.Unmarshal([]byte(out), &report); err != nil || report.Balanced == nil || !*report.Balanced ||
				!report.SumsAgree || report.Stopped == nil || len(report.Stopped) != 0 {
				t.Errorf("%s, the audit %s: %v\n%s", after, form, err, out)
			}
		}
		must(t, "store", "status", "--redis-url", store)
	}
	// set writes a field as a node does, and returns a function that takes it away again.
	set := func(key, field, value string) (unset func()) {
		t.Helper()
		testkit.Check(t, client.HSet(t.Context(), key, field, value).Err())
		return func() { client.HDel(t.Context(), key, field) }
	}
	wantStatus := func(text string) {
		t.Helper()
		status, out, stderr := command(t, "store", "status", "--redis-url", store)
		if status != 1 || !strings.Contains(out+stderr, text) {
			t.Errorf("store status exits %d; want %q:\n%s%s", status, text, out, stderr)
		}
	}
	// A second game, which has no money: an audit of a game that is not there is an error.
	testkit.Check(t, client.Set(t.Context(), keys.GameIDCounter(), 2, 0).Err())
	isBalanced("at first")

	layout := client.HGet(t.Context(), keys.Meta(), keys.MetaLayoutField).Val()
	set(keys.Meta(), keys.MetaLayoutField, "999")
	wantAudits(t, store, "NOT AUDITED", "layout", "the store has layout 999 and this release reads layout "+layout)
	wantStatus("layout 999")
	set(keys.Meta(), keys.MetaLayoutField, layout)

	// A node that was not there has seen another store: what it writes is read by its package.
	stop := testkit.Must(wire.Marshal(history.Halt{Cause: history.Older, Node: "a"}))(t)
	unset := set(keys.Meta(), keys.MetaStoppedField, string(stop))
	wantAudits(t, store, "STOPPED", "older", "money is stopped: the store has an older history")
	wantAudits(t, store, "STOPPED", "older", "money is stopped: the store has an older history", "--game", "1")
	wantStatus("money is stopped")
	unset()
	isBalanced("after the stop")

	for loss, reason := range map[string]string{
		"9|6|1700000000000|a=3;": "the store lost game 1, 3 acknowledged ledger entries: 9 were there, 6 are",
		"9|6|1700000000000|a=0;": "3 ledger entries that nobody was told of",
		"9|6|1700000000000|":     "at least 3 ledger entries",
	} {
		set(keys.Meta(), keys.MetaEpochField, "2")
		unset := set(keys.HistoryLosses(), keys.HistoryLossField(2, 1), loss)
		wantAudits(t, store, "LOST", "loss", reason)
		wantAudits(t, store, "LOST", "loss", reason, "--game", "1")
		wantStatus("1 losses are not accepted")
		must(t, "audit", "--redis-url", store, "--game", "2") // another game lost nothing
		unset()
	}
	set(keys.HistoryLosses(), keys.HistoryLossField(2, 1), "9|6|1700000000000|a=3;")
	must(t, "store", "accept", "--reason", "test", "--redis-url", store)
	isBalanced("after the loss was accepted")

	unset = set(keys.MoneyHalts(), "1:conservation", "1700000000000|1 accounts differ from the ledger")
	wantAudits(t, store, "STOPPED", "conservation", "1 accounts differ from the ledger")
	wantAudits(t, store, "STOPPED", "conservation", "1 accounts differ from the ledger", "--game", "1")
	wantStatus("1 accounts differ from the ledger")
	must(t, "audit", "--redis-url", store, "--game", "2")
	unset()
	isBalanced("after the alarm was accepted")

	// That it could not ask is another exit status, and no report.
	server.Kill()
	for _, args := range []string{"audit", "audit --json", "store status"} {
		status, out, stderr := command(t, append(strings.Fields(args), "--redis-url", store)...)
		if status != noVerdictStatus || out != "" || !strings.Contains(stderr, "store_unavailable") {
			t.Errorf("%s without a server exits %d: %s%s", args, status, out, stderr)
		}
	}
}

func TestTheStatusTellsAnotherLayoutFromAnEmptyStore(t *testing.T) {
	server := redistest.StartForTest(t)
	client := redistest.Dial(t, server)
	status, out, stderr := command(t, "store", "status", "--redis-url", server.URL())
	if status != 1 || !strings.Contains(out, "none: the store is empty") || !strings.Contains(stderr, emptyStore) {
		t.Errorf("of an empty store it exits %d:\n%s%s", status, out, stderr)
	}
	testkit.Check(
		t, client.HSet(t.Context(), keys.Meta(), keys.MetaInstallationField, "other", keys.MetaLayoutField, "999").Err(),
	)
	// What another layout has there is not read.
	testkit.Check(t, client.HSet(t.Context(), keys.HistoryLosses(), "?", "?").Err())
	status, out, stderr = command(t, "store", "status", "--redis-url", server.URL())
	if status != 1 || strings.Contains(out, "empty") || strings.Contains(out, "goes on") ||
		!strings.Contains(stderr, foreignStore) {
		t.Errorf("of another layout it exits %d:\n%s%s", status, out, stderr)
	}
	status, out, _ = command(t, "store", "status", "--json", "--redis-url", server.URL())
	var found struct {
		Installation string `json:"installation"`
		Layout       string `json:"layout"`
		Problem      string `json:"problem"`
	}
	if err := wire.Unmarshal([]byte(out), &found); err != nil || status != 1 || found.Layout != "999" ||
		found.Installation != "other" || !strings.Contains(found.Problem, foreignStore) {
		t.Errorf("as JSON it exits %d: %v\n%s", status, err, out)
	}
}
