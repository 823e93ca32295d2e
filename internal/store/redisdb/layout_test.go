package redisdb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// setLayout sets the layout of a store.
func setLayout(t *testing.T, db *redisdb.DB, layout any) {
	t.Helper()
	testkit.Check(t, db.Client.HSet(t.Context(), keys.Meta(), keys.MetaLayoutField, layout).Err())
}

func TestAStoreKeepsItsLayoutWhenANewerBuildStarts(t *testing.T) {
	redisdb.ReadLayouts(t, 3, 4)
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		required := redisdb.Requirements{FreeShards: 1}
		if err := db.CheckRequirements(t.Context(), required); err != nil || db.Layout() != 4 {
			t.Fatalf("a new store has layout %d, %v; want the newest", db.Layout(), err)
		}
		setLayout(t, db, 3)
		if err := db.CheckRequirements(t.Context(), required); err != nil || db.Layout() != 3 {
			t.Errorf("a store with layout 3 has layout %d, %v", db.Layout(), err)
		}
		if got := db.Client.HGet(t.Context(), keys.Meta(), keys.MetaLayoutField).Val(); got != "3" {
			t.Errorf("a start made layout %s of it", got)
		}
	})
}

func TestAStoreWithALayoutThatIsNotReadIsRefused(t *testing.T) {
	redisdb.ReadLayouts(t, 3, 4)
	db := redistest.Single(t)
	for layout, want := range map[string]string{
		"5":     "run the release that raised it, or a newer one",
		"2":     "parlor upgrade migrate",
		"3.1":   "no number",
		"three": "no number",
	} {
		setLayout(t, db, layout)
		err := db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 1})
		if unmet := (redisdb.RequirementError{}); !errors.As(err, &unmet) || len(unmet) != 1 ||
			!strings.Contains(unmet[0], want) {
			t.Errorf("layout %s: %v; want %q", layout, err, want)
		}
	}
}

func TestACommandWritesTheLayoutOfTheStore(t *testing.T) {
	redisdb.ReadLayouts(t, 3, 4)
	db := redistest.Single(t)
	setLayout(t, db, 3)
	if i, err := db.ReadInstallation(t.Context()); err != nil || i.HasOtherLayout() || db.Layout() != 3 {
		t.Errorf("a store with layout 3: %+v, %v, and layout %d is written", i, err, db.Layout())
	}
}

func TestAStoreThatIsEmptiedGetsTheLayoutThatItHad(t *testing.T) {
	redisdb.ReadLayouts(t, 3, 4)
	db := redistest.Single(t)
	required := redisdb.Requirements{FreeShards: 1}
	setLayout(t, db, 3)
	testkit.Check(t, db.CheckRequirements(t.Context(), required))
	testkit.Check(t, db.Client.FlushDB(t.Context()).Err())
	if err := db.ReadLayout(t.Context()); err != nil || db.Layout() != 3 {
		t.Errorf("an empty store has layout %d, %v", db.Layout(), err)
	}
	if err := db.CheckRequirements(t.Context(), required); err != nil || db.Layout() != 3 {
		t.Errorf("nodes of the release before cannot go on: layout %d, %v", db.Layout(), err)
	}
}

// While package migrate works, the layout is a text.
func TestABuildWritesNothingIntoAStoreWhoseLayoutIsNoNumber(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		name := func() error {
			_, err := db.RunScript(t.Context(), scripts.WorkName, []string{keys.GamesWithWork("test")}, 1)
			return err
		}
		for _, layout := range []string{"1>3", "1>3:remove", "three"} {
			setLayout(t, db, redisdb.NewestLayout())
			testkit.Check(t, errors.Join(db.ReadLayout(t.Context()), name()))
			setLayout(t, db, layout)
			if err := db.ReadLayout(t.Context()); err == nil || db.LayoutProblem() != err.Error() {
				t.Errorf("layout %s: %v, and the problem %q", layout, err, db.LayoutProblem())
			}
			testkit.WantError(t, name(), apierror.StoreUnavailable, "layout %s: a script that writes returns", layout)
		}
	})
}

func TestABuildThatDoesNotReadTheStoreAnyMoreWritesNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		testkit.Check(t, db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 1}))
		name := func() error {
			_, err := db.RunScript(t.Context(), scripts.WorkName, []string{keys.GamesWithWork("test")}, 1)
			return err
		}
		testkit.Check(t, name())
		setLayout(t, db, redisdb.NewestLayout()+1)
		if err := db.ReadLayout(t.Context()); err == nil || db.LayoutProblem() == "" {
			t.Fatalf("a layout that is not read: %v", err)
		}
		testkit.WantError(t, name(), apierror.StoreUnavailable, "a script that writes")
		results := db.RunScriptPipelined(t.Context(), scripts.WorkName,
			[]redisdb.ScriptCall{{Keys: []string{keys.GamesWithWork("test")}, Args: []any{1}}})
		if !errors.Is(results[0].Failure, apierror.StoreUnavailable) {
			t.Errorf("a script of a pipeline: %v", results[0].Failure)
		}
		_, _, err := db.RunScriptAndRead(t.Context(), scripts.WorkName, keys.GamesWithWork("test"),
			[]string{keys.GamesWithWork("test")}, 1)
		testkit.WantError(t, err, apierror.StoreUnavailable, "a script before a read")
		if _, err := db.RunScript(t.Context(), scripts.TotalsRead, []string{keys.Totals(1)}); errors.Is(
			err, apierror.StoreUnavailable) {
			t.Errorf("a script that only reads: %v", err)
		}
		setLayout(t, db, redisdb.NewestLayout())
		testkit.Report(t, errors.Join(db.ReadLayout(t.Context()), name()), "when the store can be read again")
	})
}

// A full store takes no reports of nodes: nobody knows then which of them run.
func TestTheLayoutOfAFullStoreDoesNotRise(t *testing.T) {
	redisdb.ReadLayouts(t, 3, 4)
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	setLayout(t, db, 3)
	redistest.Fill(t, db)
	testkit.Fails(db.RaiseLayout(t.Context(), 3, 4, nil))(t, apierror.StoreFull, "a full store")
	if got := db.Client.HGet(t.Context(), keys.Meta(), keys.MetaLayoutField).Val(); got != "3" {
		t.Errorf("the layout became %s", got)
	}
}

func TestTheLayoutRisesOnceWithAllNodesKnown(t *testing.T) {
	redisdb.ReadLayouts(t, 3, 4)
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		setLayout(t, db, 3)
		db.Client.HSet(t.Context(), keys.Nodes(), "a", "{}", "b", "{}")
		raise := func(ids ...string) bool {
			return testkit.Must(db.RaiseLayout(t.Context(), 3, 4, ids))(t)
		}
		if raise("a") || raise("a", "c") || raise("a", "b", "c") {
			t.Error("the layout rose with a node that nobody looked at")
		}
		if !raise("a", "b") || db.Layout() != 4 {
			t.Errorf("the layout is %d", db.Layout())
		}
		if !raise("a", "b") {
			t.Error("a call that is sent again is refused")
		}
	})
}
