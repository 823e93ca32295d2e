package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Options say how a migration runs.
type Options struct {
	DryRun bool          // read and count only
	Lease  time.Duration // after which another process may take over; 0: DefaultLease
	Out    io.Writer     // where the progress goes
	// CreateInstallation gives the installation its name, before nodes may start; nil for none. It is
	// called again when a migration is run again.
	CreateInstallation func(ctx context.Context) error
}

// DefaultLease is long enough for a store that is away for a moment. MinLease is short enough for a
// process that is killed often.
const (
	DefaultLease = 10 * time.Second
	MinLease     = 100 * time.Millisecond
)

// The values of the installation's layout.
const (
	oldLayout      = "1"
	secondLayout   = "2"
	copyingLayout  = "1>3"
	removingLayout = "1>3:remove"
	newLayout      = "3"
)

// ErrRunning means that another migration has the lease.
var ErrRunning = errors.New("another migration is running on this store")

// Kinds of records, as the progress names them.
const (
	countGames    = "games"
	countTokens   = "tokens"
	countUsers    = "users"
	countFriends  = "friendships"
	countSaves    = "players with saves"
	countSessions = "sessions"
	countWallets  = "wallets"
	countAssets   = "assets"
	countOwners   = "inventories"
	countRooms    = "rooms"
	countReceipts = "receipts"
	countEntries  = "ledger entries"
)

var countNames = []string{
	countGames, countTokens, countUsers, countFriends, countSaves, countSessions, countAssets, countOwners,
	countWallets, countEntries, countRooms, countReceipts,
}

// counts are the records of each kind that a pass has seen.
type counts map[string]int64

// Result is the outcome of a migration.
type Result struct {
	WasDone bool // the store had the layout already
	Counts  map[string]int64
	Tokens  []TokenTotal
}

// TokenTotal is the money of one token in one game, in minor units.
type TokenTotal struct {
	GameID                         int64
	Code                           string
	Minted, Wallets, Escrow, House int64
}

// Run migrates a store, or resumes an interrupted migration. It returns ErrRunning while another
// one runs. If the store cannot be migrated it writes nothing and returns an error with the cause.
func Run(ctx context.Context, db *redisdb.DB, o Options) (Result, error) {
	if o.Lease <= 0 {
		o.Lease = DefaultLease
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	s := &store{db: db}
	layout, err := s.readLayout(ctx)
	if err != nil {
		return Result{}, err
	}
	switch layout {
	case newLayout:
		return Result{WasDone: true}, nil
	case "":
		return Result{}, errors.New("the store has no layout: no node was ever started on it")
	case oldLayout, secondLayout, copyingLayout, removingLayout:
	default:
		return Result{}, fmt.Errorf("the store has layout %q, which this release cannot migrate", layout)
	}
	m := &migration{store: s, out: o.Out, createInstallation: o.CreateInstallation, total: counts{}}
	if o.DryRun {
		if layout == removingLayout {
			return Result{}, errors.New("the store is migrated, and the old keys are being removed: run it without --dry-run")
		}
		survey, err := m.pass(ctx, "reading", discard{})
		return survey.result(), err
	}
	if err := s.takeLease(ctx, o.Lease, o.Out); err != nil {
		return Result{}, err
	}
	result, err := m.run(ctx)
	return result, errors.Join(err, s.endLease(ctx))
}

// migration is one run.
type migration struct {
	store              *store
	out                io.Writer
	createInstallation func(ctx context.Context) error
	total              counts // of the first pass
	lastLine           time.Time
}

func (m *migration) run(ctx context.Context) (Result, error) {
	// Another migration may have gone on before the lease was there.
	layout, err := m.store.readLayout(ctx)
	if err != nil || layout == newLayout {
		return Result{WasDone: err == nil}, err
	}
	var result Result
	if layout != removingLayout {
		survey, err := m.pass(ctx, "reading", discard{})
		if err != nil {
			return Result{}, err
		}
		m.total = survey.counts
		result = survey.result()
		if err := m.store.setLayout(ctx, copyingLayout); err != nil {
			return Result{}, err
		}
		if _, err := m.pass(ctx, "writing", writer{m.store}); err != nil {
			return Result{}, err
		}
		compared, err := m.pass(ctx, "comparing", comparer{m.store})
		if err != nil {
			return Result{}, err
		}
		if err := survey.sameAs(compared); err != nil {
			return Result{}, err
		}
		if err := m.store.closeLedger(ctx, survey.entries); err != nil {
			return Result{}, err
		}
		if err := m.store.setLayout(ctx, removingLayout); err != nil {
			return Result{}, err
		}
	}
	if err := m.removeOld(ctx); err != nil {
		return Result{}, err
	}
	if m.createInstallation != nil { // a migration cut off after its last write has no work left
		if err := m.createInstallation(ctx); err != nil {
			return Result{}, err
		}
	}
	return result, m.store.setLayout(ctx, newLayout)
}

// pass converts every old key and hands the records to a sink.
func (m *migration) pass(ctx context.Context, stage string, to sink) (*passState, error) {
	p := newPassState(m.store, to, func(c counts) { m.report(stage, c) })
	if err := p.loadTokens(ctx); err != nil {
		return p, err
	}
	err := m.store.eachOldKey(ctx, p.convertPage)
	if err == nil {
		err = p.convertLedger(ctx)
	}
	m.lastLine = time.Time{} // the last line of the stage is printed
	m.report(stage, p.counts)
	if err == nil {
		err = p.finish(ctx)
	}
	if err != nil {
		return p, err
	}
	if defects := p.defects(); len(defects) > 0 {
		return p, fmt.Errorf("the store cannot be migrated, and nothing was removed:\n%s", strings.Join(defects, "\n"))
	}
	return p, nil
}

func (m *migration) removeOld(ctx context.Context) error {
	removed := counts{}
	err := m.store.eachOldKey(ctx, func(ctx context.Context, page []oldKey) error {
		n, err := m.store.removeOld(ctx, page)
		removed[countRemoved] += n
		m.report("removing", removed)
		return err
	})
	m.lastLine = time.Time{}
	m.report("removing", removed)
	return err
}

const countRemoved = "old keys"

// report prints a line a second.
func (m *migration) report(stage string, c counts) {
	if time.Since(m.lastLine) < time.Second {
		return
	}
	m.lastLine = time.Now()
	var parts []string
	for _, name := range append(slices.Clone(countNames), countRemoved) {
		if n, ok := c[name]; ok {
			part := name + " " + formatCount(n)
			if of := m.total[name]; of > 0 {
				part += " of " + formatCount(of)
			}
			parts = append(parts, part)
		}
	}
	_, _ = fmt.Fprintf(m.out, "%s: %s\n", stage, strings.Join(parts, ", "))
}

// formatCount returns 1200 as "1,200".
func formatCount(n int64) string {
	digits := fmt.Sprint(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// Print writes the result as two tables.
func (r Result) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, name := range countNames {
		if n, ok := r.Counts[name]; ok {
			_, _ = fmt.Fprintf(w, "%s\t%s\t\n", name, formatCount(n))
		}
	}
	_, _ = fmt.Fprintln(w, "game\ttoken\tminted\twallets\tescrow\thouse\t")
	for _, t := range r.Tokens {
		_, _ = fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\t%d\t\n", t.GameID, t.Code, t.Minted, t.Wallets, t.Escrow, t.House)
	}
	return w.Flush()
}
