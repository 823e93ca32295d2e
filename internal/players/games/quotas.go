package games

import (
	"fmt"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// Quotas bounds what a game may have in the store. Only the operator changes it.
type Quotas struct {
	Boards           int64 // leaderboards that are not deleted
	OpenTournaments  int64 // tournaments that have not ended
	Assets           int64 // in the catalogue, on sale or not
	NewPlayersPerDay int64 // that are made in a day (UTC)
	Bytes            int64 // of the store; 0: no bound of its own, see package usage
}

// QuotaName names a member of Quotas, on the wire and as the limit of limit_reached.
type QuotaName string

// The names of quotas.
const (
	QuotaBoards     QuotaName = "boards"
	QuotaTours      QuotaName = "openTournaments"
	QuotaAssets     QuotaName = "assets"
	QuotaNewPlayers QuotaName = "newPlayersPerDay"
	QuotaBytes      QuotaName = "bytes"
)

// Quota is a row of the table of quotas.
type Quota struct {
	Name    QuotaName
	What    string // is counted, for docs/limits.md
	Default int64
	Most    int64  // that an operator can set
	Exact   string // how exact the count is, for docs/limits.md

	of      func(*Quotas) *int64
	inPatch func(*QuotasPatch) **int64
}

// maxQuota bounds what an operator can set: more of one kind is never counted or listed in time.
const maxQuota = 1_000_000

// QuotaTable returns what bounds a game.
func QuotaTable() []Quota {
	return []Quota{
		{
			QuotaBoards, "leaderboards, without those of tournaments", 200, maxQuota,
			"exact; a board whose creation failed halfway counts until it is created again or deleted",
			func(q *Quotas) *int64 { return &q.Boards }, func(p *QuotasPatch) **int64 { return &p.Boards },
		},
		{
			QuotaTours, "tournaments that have not ended", 1_000, maxQuota, "exact",
			func(q *Quotas) *int64 { return &q.OpenTournaments }, func(p *QuotasPatch) **int64 { return &p.OpenTournaments },
		},
		{
			QuotaAssets, "assets, on sale or not", 5_000, maxQuota, "exact",
			func(q *Quotas) *int64 { return &q.Assets }, func(p *QuotasPatch) **int64 { return &p.Assets },
		},
		{
			QuotaNewPlayers, "players who are made in a day (UTC)", 100_000, 1_000 * maxQuota,
			"exact; a sign-in that fails after it was counted counts",
			func(q *Quotas) *int64 { return &q.NewPlayersPerDay }, func(p *QuotasPatch) **int64 { return &p.NewPlayersPerDay },
		},
		{
			QuotaBytes, "bytes in the store", 0, 1 << 53,
			"estimated from samples, some seconds old",
			func(q *Quotas) *int64 { return &q.Bytes }, func(p *QuotasPatch) **int64 { return &p.Bytes },
		},
	}
}

// QuotasPatch is Quotas on the wire. In requests an absent member stays as it is; in responses all
// are present.
type QuotasPatch struct {
	Boards           *int64 `json:"boards,omitzero"`
	OpenTournaments  *int64 `json:"openTournaments,omitzero"`
	Assets           *int64 `json:"assets,omitzero"`
	NewPlayersPerDay *int64 `json:"newPlayersPerDay,omitzero"`
	Bytes            *int64 `json:"bytes,omitzero"` // 0: none
}

// defaultQuotas returns the quotas of a game for which the operator chose none.
func defaultQuotas() (q Quotas) {
	for _, row := range QuotaTable() {
		*row.of(&q) = row.Default
	}
	return q
}

func (q Quotas) asPatch() *QuotasPatch {
	p := new(QuotasPatch)
	for _, row := range QuotaTable() {
		*row.inPatch(p) = row.of(&q)
	}
	return p
}

func (q Quotas) merge(p *QuotasPatch) Quotas {
	if p == nil {
		return q
	}
	for _, row := range QuotaTable() {
		wire.Set(row.of(&q), *row.inPatch(p))
	}
	return q
}

func (p *QuotasPatch) check(errs *apierror.FieldErrors) {
	if p == nil {
		return
	}
	for _, row := range QuotaTable() {
		if n := *row.inPatch(p); n != nil && (*n < 0 || *n > row.Most) {
			errs.Add("settings.quotas."+string(row.Name), "range", fmt.Sprintf("must be 0 to %d", row.Most))
		}
	}
}

// Use counts what a game has of each bounded kind.
type Use map[QuotaName]int64

// Of returns the quota with a name.
func (q Quotas) Of(name QuotaName) int64 {
	for _, row := range QuotaTable() {
		if row.Name == name {
			return *row.of(&q)
		}
	}
	return 0
}

// Reached returns limit_reached, with the members limit and max, for a game that has reached a
// quota.
func (q Quotas) Reached(name QuotaName) error {
	return apierror.ReachedQuota(string(name), q.Of(name))
}
