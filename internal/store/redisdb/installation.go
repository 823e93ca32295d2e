package redisdb

import (
	"context"
	"strings"

	"github.com/parlor-games/parlor/internal/store/keys"
)

// Installation is what a store says of itself.
type Installation struct {
	ID        string // random name, "" when the store has no installation
	Layout    string // version of the schema in package keys, "" when no node has written it yet
	Shards    string // number of shards for free rooms, "" when no node has written it yet
	IsStopped bool   // nodes have stopped money: package history reads why
}

// ReadInstallation reads the installation record of the store. From then on this process writes in
// the store's layout. It returns store_unavailable when the store cannot be reached.
func (db *DB) ReadInstallation(ctx context.Context) (Installation, error) {
	have, err := db.Client.HGetAll(ctx, keys.Meta()).Result()
	if err != nil {
		return Installation{}, WrapError("read the installation's record", err)
	}
	i := Installation{
		ID: have[keys.MetaInstallationField], Layout: have[keys.MetaLayoutField], Shards: have[keys.MetaShardsField],
		IsStopped: have[keys.MetaStoppedField] != "",
	}
	if i.Layout != "" && !i.HasOtherLayout() {
		err = db.setLayout(i.Layout)
	}
	return i, err
}

// HasOtherLayout reports whether this release cannot read the store's keys.
func (i Installation) HasOtherLayout() bool { return i.layoutProblem() != "" }

// layoutProblem describes why this release cannot read the layout. It returns "" when the release
// can, and when the store has no layout yet.
func (i Installation) layoutProblem() string {
	if i.Layout == "" {
		return ""
	}
	number, err := parseLayout(i.Layout)
	if err != nil {
		return err.Error()
	}
	return readable.problem(number)
}

// CanMigrate reports whether the store has a layout that package migrate rewrites, or a migration
// of it has begun.
func (i Installation) CanMigrate() bool {
	from, _, _ := strings.Cut(i.Layout, ">")
	number, err := parseLayout(from)
	return err == nil && number <= lastMigratedLayout
}

// IsMissing reports whether the store has no installation: it is empty, or somebody else's.
func (i Installation) IsMissing() bool { return i.ID == "" && !i.HasOtherLayout() }

// Problem describes why this release must not read the store, and what to do. It returns "" if this
// release can read it.
func (i Installation) Problem() string {
	problem := i.layoutProblem()
	switch {
	case problem != "":
		return problem
	case i.IsMissing() && i.IsStopped:
		return "the store has no installation, and nodes that had one there have stopped money: see parlor store status; " +
			"an operator can accept the empty store with: parlor store accept"
	case i.IsMissing():
		return "the store has no installation: it is empty, or not the store of the nodes; check PARLOR_REDIS_URL " +
			"(the first node that starts makes the installation)"
	}
	return ""
}
