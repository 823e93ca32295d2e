package nodes

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestBuildsAreCountedAndAMixedInstallationIsNamed(t *testing.T) {
	one := Report{Version: "v1.0.0", Commit: "aaaaaaaaaaaaaaaa", Oldest: 3, Newest: 4}
	patched, before := one, Report{Version: "v0.9.0"} // whose reports have no layouts
	patched.Commit = "bbbbbbbbbbbbbbbb"
	next := Report{Version: "v1.1.0", Oldest: 4, Newest: 5}
	for _, tt := range []struct {
		name   string
		list   []Report
		layout int
		want   string
		ok     bool
	}{
		{"one build", []Report{one, one}, 4, "v1.0.0 on 2 nodes; the store has layout 4", true},
		{
			"a roll",
			[]Report{before, one, one},
			3,
			"mixed: v1.0.0 on 2 nodes, v0.9.0 on 1 node; the store has layout 3, which all read", true,
		},
		{
			"one version, two commits",
			[]Report{one, patched},
			3,
			"mixed: v1.0.0 (commit aaaaaaaaaaaa) on 1 node, v1.0.0 (commit bbbbbbbbbbbb) on 1 node; " +
				"the store has layout 3, which all read", true,
		},
		{
			"a node that was left behind",
			[]Report{before, one, one},
			4,
			"v1.0.0 on 2 nodes, v0.9.0 on 1 node; the store has layout 4, which v0.9.0 cannot read", false,
		},
		{
			"a node ahead",
			[]Report{one, next},
			3,
			"v1.0.0 on 1 node, v1.1.0 on 1 node; the store has layout 3, which v1.1.0 cannot read", false,
		},
	} {
		if detail, ok := describeBuilds(countBuilds(tt.list), tt.layout); detail != tt.want || ok != tt.ok {
			t.Errorf("%s: %q, %v", tt.name, detail, ok)
		}
	}
}

func TestANodeKnowsTheBuildsOfTheOthers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a := newNode(db, "a", &Reading{})
		old := `{"id":"b","host":"h","version":"v0.9.0","at":` + jsonNow(t) + `}`
		testkit.Check(t, db.Client.HSet(t.Context(), keys.Nodes(), "b", old).Err())
		if detail, ok := a.DescribeBuilds(); !strings.HasPrefix(detail, "1; the store has layout") || !ok {
			t.Errorf("before the first look: %q, %v", detail, ok)
		}
		a.Announce(t.Context())
		a.write(t.Context(), true)
		detail, ok := a.DescribeBuilds()
		if !strings.HasPrefix(detail, "mixed: 1 on 1 node, v0.9.0 on 1 node;") || !ok {
			t.Errorf("%q, %v", detail, ok)
		}
		r := list(t, a)
		own := r[max(0, len(r)-1)]
		if own.ID != "a" || own.Layout != db.Layout() || own.Newest != redisdb.NewestLayout() {
			t.Errorf("the report is %+v", own)
		}
		a.Withdraw(t.Context())
		if all := list(t, a); len(all) != 1 || all[0].ID != "b" {
			t.Errorf("a node that does not start left %+v", all)
		}
		raised := redisdb.NewestLayout() + 1
		testkit.Check(t, db.Client.HSet(t.Context(), keys.Meta(), keys.MetaLayoutField, raised).Err())
		_ = db.ReadLayout(t.Context())
		if detail, ok := a.DescribeBuilds(); ok || !strings.Contains(detail, "this node writes nothing") {
			t.Errorf("on a store that this build does not read: %q, %v", detail, ok)
		}
	})
}
