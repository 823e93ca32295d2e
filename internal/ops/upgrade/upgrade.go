package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/ops/nodes"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Plan has the changes that Finish would make.
type Plan struct {
	Layout int `json:"storeLayout"`  // of the store
	Oldest int `json:"oldestLayout"` // that this build reads
	Newest int `json:"newestLayout"`
	Next   int `json:"nextLayout"` // that Finish gives the store; Layout when it would be refused
	// Nodes are those that have reported within the last minute. Behind are those of them that do not
	// read Newest.
	Nodes  []Node `json:"nodes"`
	Behind []Node `json:"behind"`
}

// Node is a node as it has reported.
type Node struct {
	ID      string `json:"id"`
	Host    string `json:"host"`
	Version string `json:"version"`
	Commit  string `json:"commit"` // "" of v0.9.0
	Newest  int    `json:"newestLayout"`
}

// String returns the node for a sentence: "v0.9.0 on a.example (3f6c…)".
func (n Node) String() string {
	return cmp.Or(n.Version, "unknown version") + " on " + cmp.Or(n.Host, "unknown host") + " (" + n.ID + ")"
}

// ReadPlan returns what Finish would do now. For a store that this build cannot read, it returns
// the plan and a redisdb.RequirementError.
func ReadPlan(ctx context.Context, db *redisdb.DB) (Plan, error) {
	return read(ctx, db, redisdb.OldestLayout(), redisdb.NewestLayout())
}

// read is Read of a build that reads the layouts oldest to newest.
func read(ctx context.Context, db *redisdb.DB, oldest, newest int) (Plan, error) {
	layoutErr := db.ReadLayout(ctx)
	var unmet redisdb.RequirementError
	if layoutErr != nil && !errors.As(layoutErr, &unmet) {
		return Plan{}, layoutErr
	}
	list, err := nodes.New(db, nodes.Options{}).List(ctx, principal.Caller{Role: principal.Operator})
	if err != nil {
		return Plan{}, err
	}
	return newPlan(db.Layout(), oldest, newest, list), layoutErr
}

// newPlan returns the plan of a build that reads the layouts oldest to newest.
func newPlan(layout, oldest, newest int, list []nodes.Report) Plan {
	p := Plan{Layout: layout, Oldest: oldest, Newest: newest, Next: newest, Nodes: []Node{}, Behind: []Node{}}
	for _, r := range list {
		n := Node{ID: r.ID, Host: r.Host, Version: r.Version, Commit: r.Commit, Newest: r.NewestReadable()}
		p.Nodes = append(p.Nodes, n)
		if n.Newest < p.Newest {
			p.Behind = append(p.Behind, n)
		}
		p.Next = min(p.Next, n.Newest)
	}
	if p.Next < layout || layout < oldest {
		p.Next = layout
	}
	return p
}

// Problem returns why Finish would be refused, nil when it would raise the layout.
func (p Plan) Problem() error {
	switch {
	case p.Next > p.Layout:
		return nil
	case len(p.Behind) == 0:
		return fmt.Errorf("there is nothing to finish: the store has layout %d, the newest that this release reads", p.Layout)
	}
	names := make([]string, len(p.Behind))
	for i, n := range p.Behind {
		names[i] = n.String()
	}
	return fmt.Errorf("the layout %d would be unreadable to nodes that have reported within the last minute: %s; "+
		"upgrade or stop them first", p.Newest, strings.Join(names, ", "))
}

// attempts bounds how often Finish looks at the nodes again when some start or stop meanwhile.
const attempts = 5

// Finish raises the layout of the store to the newest that this build and all nodes read, and
// returns the plan that it carried out. It returns Problem of the plan, and changes nothing then.
func Finish(ctx context.Context, db *redisdb.DB) (Plan, error) {
	return finish(ctx, db, redisdb.OldestLayout(), redisdb.NewestLayout())
}

// finish is Finish of a build that reads the layouts oldest to newest.
func finish(ctx context.Context, db *redisdb.DB, oldest, newest int) (Plan, error) {
	for range attempts {
		p, err := read(ctx, db, oldest, newest)
		if err == nil {
			err = p.Problem()
		}
		if err != nil {
			return p, err
		}
		ids := make([]string, len(p.Nodes))
		for i, n := range p.Nodes {
			ids[i] = n.ID
		}
		if raised, err := db.RaiseLayout(ctx, p.Layout, p.Next, ids); raised || err != nil {
			return p, err
		}
	}
	return Plan{}, errors.New("nodes start and stop all the time; try again when they have settled")
}
