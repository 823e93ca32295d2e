package upgrade

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/ops/nodes"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func TestThePlanIsTheNewestLayoutThatEveryNodeReads(t *testing.T) {
	next := nodes.Report{ID: "n", Host: "a", Version: "v2", Oldest: 3, Newest: 5}
	between := nodes.Report{ID: "m", Host: "b", Version: "v1.5", Oldest: 3, Newest: 4}
	before := nodes.Report{ID: "o", Host: "c", Version: "v1"} // whose reports have no layouts
	for _, tt := range []struct {
		name    string
		layout  int
		list    []nodes.Report
		next    int
		problem string
	}{
		{"no node", 3, nil, 5, ""},
		{"all new", 3, []nodes.Report{next, next}, 5, ""},
		{"one of the release before", 3, []nodes.Report{next, before}, 3, "v1 on c (o); upgrade or stop them first"},
		{"one that is half new", 3, []nodes.Report{next, between}, 4, ""},
		{"one that is half new, again", 4, []nodes.Report{next, between}, 4, "v1.5 on b (m)"},
		{"several in the way", 3, []nodes.Report{before, between}, 3, "v1 on c (o), v1.5 on b (m)"},
		{"finished", 5, []nodes.Report{next}, 5, "nothing to finish: the store has layout 5"},
		{"a store of a later release", 6, []nodes.Report{next}, 6, "nothing to finish"},
		{"a store that is too old", 2, nil, 2, "nothing to finish"},
	} {
		p := newPlan(tt.layout, 3, 5, tt.list)
		if p.Next != tt.next || p.Layout != tt.layout || len(p.Nodes) != len(tt.list) {
			t.Errorf("%s: %+v, want layout %d next", tt.name, p, tt.next)
		}
		got := ""
		if err := p.Problem(); err != nil {
			got = err.Error()
		}
		if (got == "") != (tt.problem == "") || !strings.Contains(got, tt.problem) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.problem)
		}
	}
}

// TestFinishLooksAgainWhenNodesStartMeanwhile has a node start between the look and the rise.
func TestFinishLooksAgainWhenNodesStartMeanwhile(t *testing.T) {
	layout := redisdb.NewestLayout()
	for newest, says := range map[int]string{
		layout:     "upgrade or stop them first",
		layout + 1: "run the release that raised it", // as this build finds afterwards
	} {
		db := redistest.Single(t)
		testkit.Check(t, db.Client.HSet(t.Context(), keys.Meta(), keys.MetaLayoutField, layout).Err())
		starts := sync.OnceFunc(func() {
			text := fmt.Sprintf(`{"id":"n","oldestLayout":%d,"newestLayout":%d,"at":%q}`, layout, newest,
				time.Now().Format(time.RFC3339Nano))
			testkit.Report(t, db.Client.HSet(t.Context(), keys.Nodes(), "n", text).Err())
		})
		redistest.ObserveCommands(db, func(commands []redis.Cmder) {
			if strings.HasPrefix(commands[0].Name(), "eval") {
				starts()
			}
		})
		p, err := finish(t.Context(), db, layout, layout+1)
		if err == nil || !strings.Contains(err.Error(), says) || p.Next != newest || len(p.Nodes) != 1 {
			t.Errorf("with a node that reads up to %d: %+v, %v", newest, p, err)
		}
		if got, _ := db.Client.HGet(t.Context(), keys.Meta(), keys.MetaLayoutField).Int(); got != newest {
			t.Errorf("with a node that reads up to %d the store has layout %d", newest, got)
		}
	}
}

func TestFinishIsRefusedWhereThereIsNothingToRaise(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		newest := redisdb.NewestLayout()
		for layout, isReadable := range map[int]bool{newest: true, newest + 1: false, redisdb.OldestLayout() - 1: false} {
			testkit.Check(t, db.Client.HSet(t.Context(), keys.Meta(), keys.MetaLayoutField, layout).Err())
			p, err := Finish(t.Context(), db)
			unmet := redisdb.RequirementError{}
			if err == nil || errors.As(err, &unmet) == isReadable || p.Next != layout {
				t.Errorf("layout %d: %+v, %v", layout, p, err)
			}
			if got, _ := db.Client.HGet(t.Context(), keys.Meta(), keys.MetaLayoutField).Int(); got != layout {
				t.Errorf("layout %d became %d", layout, got)
			}
		}
	})
}
