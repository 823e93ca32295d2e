package history

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/wire"
)

const (
	pollInterval    = 200 * time.Millisecond // between two looks at the games that this node changed
	metaInterval    = time.Second            // between two looks at the installation's record, and two marks
	compareInterval = 30 * time.Second       // between two looks at all games
	lookTimeout     = 2 * time.Second

	// maxRecentLoss is how old an entry may be that a failover or a crash loses. What lost older
	// entries is another history.
	maxRecentLoss = time.Minute
	slotSpan      = 2 * time.Second // what one remembered entry stands for
	maxSlots      = 40
)

// Stop is why money is stopped.
type Stop struct {
	Cause        Cause     `json:"cause"`
	At           time.Time `json:"at"`
	Node         string    `json:"node"`
	Installation string    `json:"installation"` // that the node knows
	Epoch        int64     `json:"epoch"`        // that the node knows
}

// Cause is what is wrong with a store.
type Cause string

// The causes.
const (
	Empty   Cause = "empty"   // it has no installation
	Foreign Cause = "foreign" // it has another installation
	Older   Cause = "older"   // it lacks entries that no failover can have lost
)

// Sentence describes the stop for anyone to read.
func (s Stop) Sentence() string {
	text := map[Cause]string{
		Empty:   "the store is empty, and was not before",
		Foreign: "the store belongs to another installation than before",
		Older:   "the store has an older history than before",
	}[s.Cause]
	return "money is stopped: " + text + "; an operator can accept it with: parlor store accept"
}

// countMissing returns "17 ledger entries of 2 games".
func countMissing(losses []Loss) string {
	entries, games := int64(0), map[int64]bool{}
	for _, l := range losses {
		if l.GameID > 0 {
			entries += l.Entries()
			games[l.GameID] = true
		}
	}
	return fmt.Sprintf("%d ledger entries of %d games", entries, len(games))
}

// Check is one line of what is known, for /readyz.
type Check struct {
	Name, Detail string
	OK           bool
}

// Stats are the figures of one node.
type Stats struct {
	Epoch       int64
	Losses      int64 // times that this node noticed a loss
	EntriesLost int64 // ledger entries that no operator has accepted the loss of
	Stopped     bool
}

// Options are the settings of a node.
type Options struct {
	StateDir    string   // folder of this node's mark; "" for none
	SigningKeys [][]byte // the first signs marks, all verify; not empty
	Node        string   // name of the node in records
	Log         *slog.Logger
	// Changes returns a number that differs after a server of the store came back or changed its role.
	Changes func() uint64
	// Prepare is called before money goes on in a store that may be another one than before, or empty.
	Prepare func(context.Context) error
	// Accepted is called with the last epoch that an operator accepted, 0 for none.
	Accepted func(epoch int64)
	// Resync is called when clients may have been told what is no longer true.
	Resync func()
}

// Service watches the history for one node.
type Service struct {
	store   store
	files   markFiles
	options Options
	log     *slog.Logger

	moneyError atomic.Pointer[apierror.Error] // of every change of money, nil while money goes on
	checks     atomic.Pointer[[]Check]
	stats      atomic.Pointer[Stats]
	lostIn     atomic.Pointer[map[int64]int64] // epoch of the last loss by game

	touchedMu    sync.Mutex
	touched      map[int64]struct{} // games that this node changed since the last look
	acknowledged map[int64][]string // nonces by game, since the last look

	// Of the goroutine of Run.
	known     mark // Games is not used: games has them
	games     map[int64]*gameHistory
	batches   map[int64][]batch // of acknowledged entries by game
	doubt     bool              // a server failed since all games were compared
	stopped   *Stop
	missing   []Loss // when money was stopped
	seenEpoch int64  // of the store when money was stopped
	flagged   bool   // the stop is in the store
	accepted  int64  // last epoch that an operator accepted
	losses    []Loss // since then
	noticed   int64
	markError string
	lastMark  string
	changes   uint64
}

// gameHistory is what a node remembers of a ledger.
type gameHistory struct {
	slots   []slot    // oldest first, never empty
	firstAt time.Time // of entry 1, zero when it is not known
}

// slot is the last entry that was seen in a span of time.
type slot struct {
	tipDoc
	since time.Time // when the span began
}

func (g *gameHistory) newest() slot { return g.slots[len(g.slots)-1] }

// see remembers an entry that was seen now.
func (g *gameHistory) see(l ledger, now time.Time) {
	tip := tipDoc{l.last, l.head}
	if l.firstHead != "" {
		g.firstAt = timeOf(l.firstHead)
	}
	switch n := len(g.slots); {
	case n > 0 && g.slots[n-1].tipDoc == tip:
	case n > 1 && now.Sub(g.slots[n-1].since) < slotSpan:
		g.slots[n-1].tipDoc = tip
	default:
		g.slots = append(g.slots, slot{tip, now})
		if len(g.slots) > maxSlots {
			g.slots = slices.Delete(g.slots, 0, 1)
		}
	}
}

// timeOf returns the time in a head, the zero time when there is none.
func timeOf(head string) time.Time {
	text, _, _ := strings.Cut(head, "|")
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// New returns a service. Money is stopped until Run has looked at the store.
func New(db *redisdb.DB, o Options) *Service {
	s := &Service{
		store: store{db}, files: newMarkFiles(o.StateDir), options: o, log: o.Log,
		touched: map[int64]struct{}{}, acknowledged: map[int64][]string{}, games: map[int64]*gameHistory{},
		batches: map[int64][]batch{},
	}
	s.moneyError.Store(apierror.StoreUnavailable.WithReason("the history of the money is not known yet"))
	s.checks.Store(&[]Check{{Name: "history", Detail: "is not known yet"}})
	s.stats.Store(&Stats{})
	s.lostIn.Store(&map[int64]int64{})
	return s
}

// AllowMoney returns store_unavailable with the reason while money is stopped.
func (s *Service) AllowMoney() error {
	if moneyError := s.moneyError.Load(); moneyError != nil {
		return moneyError
	}
	return nil
}

// Checks returns what is known, for /readyz.
func (s *Service) Checks() []Check { return *s.checks.Load() }

// Stats returns the figures of this node.
func (s *Service) Stats() Stats { return *s.stats.Load() }

// LostIn returns the games that ever lost entries, as far as this node knows, each with the epoch
// in which it lost some last. It must not be changed.
func (s *Service) LostIn() map[int64]int64 { return *s.lostIn.Load() }

// Touch is called with a game whose money this node changes.
func (s *Service) Touch(gameID int64) {
	s.touchedMu.Lock()
	s.touched[gameID] = struct{}{}
	s.touchedMu.Unlock()
}

func (s *Service) takeTouched() map[int64]struct{} {
	s.touchedMu.Lock()
	touched, acknowledged := s.touched, s.acknowledged
	s.touched = make(map[int64]struct{}, len(touched))
	s.acknowledged = make(map[int64][]string, len(acknowledged))
	s.touchedMu.Unlock()
	s.takeAcknowledged(acknowledged, time.Now())
	return touched
}

// Start compares the store with the marks. It returns an error when the store cannot be read; it is
// called again then. A store that is not the right one is no error: money is stopped.
func (s *Service) Start(ctx context.Context) error {
	err := s.start(ctx)
	if err == nil {
		s.publish()
	}
	return err
}

// Run looks at the store until ctx ends. Start must have succeeded.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var lastMeta, lastCompare time.Time
	lastFailure := ""
	for {
		now := time.Now()
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, lookTimeout)
			defer cancel()
			changes := s.options.Changes()
			s.doubt = s.doubt || changes != s.changes
			all := lastCompare.IsZero() || s.doubt || now.Sub(lastCompare) >= compareInterval || s.stopped != nil
			if all || now.Sub(lastMeta) >= metaInterval {
				if err := s.lookAtMeta(ctx); err != nil {
					return err
				}
			} else if err := s.compare(ctx, s.takeTouched()); err != nil {
				return err
			}
			if all && s.stopped == nil {
				if err := s.compare(ctx, s.allGames()); err != nil {
					return err
				}
				lastCompare, s.changes, s.doubt = now, changes, false
			}
			if !s.doubt {
				s.forgetAcknowledged(now)
			}
			if now.Sub(lastMeta) >= metaInterval {
				lastMeta = now
				s.writeMark(ctx, now)
			}
			return nil
		}()
		s.publish()
		failure := ""
		if err != nil && ctx.Err() == nil {
			s.doubt = true
			if failure = err.Error(); failure != lastFailure {
				s.log.Warn("the history of the money cannot be read", "error", err)
			}
		}
		lastFailure = failure
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// allGames returns the games that are known and those that this node has changed.
func (s *Service) allGames() map[int64]struct{} {
	all := s.takeTouched()
	for id := range s.games {
		all[id] = struct{}{}
	}
	return all
}

// start compares the store with the marks.
func (s *Service) start(ctx context.Context) error {
	marks, unreadable, err := s.readAllMarks(ctx)
	if err != nil {
		return err
	}
	s.markError = strings.Join(unreadable, "; ")
	if s.markError != "" {
		s.log.Error("a mark of the history cannot be read and is not used", "marks", s.markError)
	}
	m, err := s.store.readMeta(ctx)
	if err != nil {
		return err
	}
	if m.stopped != "" && len(marks) == 0 {
		s.known = mark{Installation: m.installation, Epoch: m.epoch}
		return s.adoptStop(ctx, m)
	}
	if m.installation == "" && len(marks) == 0 || m.installation != "" && m.epoch == 0 {
		if err := s.store.found(ctx); err != nil { // a new installation, or one of an earlier release
			return err
		}
		if m, err = s.store.readMeta(ctx); err != nil {
			return err
		}
	}
	s.known = mark{Installation: m.installation, Epoch: m.epoch}
	merged := mark{Games: map[int64]tipDoc{}}
	for _, k := range marks {
		switch {
		case k.Installation != m.installation && !m.replaces(k.Installation):
			s.known = k.clone()
			cause := Foreign
			if m.installation == "" {
				cause = Empty
			}
			return s.stop(ctx, m, cause, lossesOf(k))
		case k.Installation == m.installation && k.Epoch > m.epoch:
			s.known = k.clone()
			merged.include(k)
		case k.Installation == m.installation && k.Epoch == m.epoch:
			merged.include(k)
		} // the others are older than what was noticed or accepted since
	}
	now := time.Now()
	for id, tip := range merged.Games {
		s.games[id] = &gameHistory{slots: []slot{{tip, now}}}
	}
	gone, err := s.findGone(ctx, s.allGames())
	if err != nil {
		s.games = map[int64]*gameHistory{}
		return err
	}
	if len(gone) > 0 || s.known.Epoch > m.epoch {
		return s.stop(ctx, m, Older, listLosses(gone))
	}
	if m.stopped != "" {
		return s.adoptStop(ctx, m)
	}
	return s.loadLosses(ctx, m.accepted)
}

// lossesOf returns all that a mark knows as missing.
func lossesOf(k mark) (list []Loss) {
	for id, tip := range k.Games {
		if tip.Number > 0 {
			list = append(list, Loss{Epoch: k.Epoch, GameID: id, Known: tip.Number, At: time.Now().UTC()})
		}
	}
	slices.SortFunc(list, func(a, b Loss) int { return int(a.GameID - b.GameID) })
	return list
}

// lookAtMeta compares the installation's record with what is known.
func (s *Service) lookAtMeta(ctx context.Context) error {
	m, err := s.store.readMeta(ctx)
	if err != nil {
		return err
	}
	if s.stopped != nil {
		return s.lookWhileStopped(ctx, m)
	}
	switch {
	case m.stopped != "":
		return s.adoptStop(ctx, m)
	case m.installation != s.known.Installation && m.installation != "" && m.replaces(s.known.Installation):
		return s.goOn(ctx, m)
	case m.installation != s.known.Installation:
		k := s.known
		k.Games = s.tips()
		cause := Foreign
		if m.installation == "" {
			cause = Empty
		}
		return s.stop(ctx, m, cause, lossesOf(k))
	case m.epoch < s.known.Epoch: // the record itself went back
		return s.beginEpoch(ctx, nil)
	case m.epoch > s.known.Epoch: // another node, or an operator, has begun one
		if m.accepted >= m.epoch {
			return s.goOn(ctx, m)
		}
		gone, err := s.findGone(ctx, s.allGames())
		if err != nil {
			return err
		}
		return s.lose(ctx, m, gone)
	}
	return nil
}

// loadLosses reads what was lost since an operator accepted the store last.
func (s *Service) loadLosses(ctx context.Context, accepted int64) error {
	all, err := s.store.readLosses(ctx)
	if err == nil {
		lostIn := map[int64]int64{}
		for _, l := range all {
			lostIn[l.GameID] = max(lostIn[l.GameID], l.Epoch)
		}
		s.lostIn.Store(&lostIn)
		s.losses = slices.DeleteFunc(all, func(l Loss) bool { return l.Epoch <= accepted })
		s.accepted = accepted
		s.options.Accepted(accepted)
	}
	return err
}

// goneGame is a game that lacks what was seen.
type goneGame struct {
	Loss
	recent bool // a failover may have lost it
	now    ledger
}

// compare looks for the entries that were seen, and remembers the newest ones.
func (s *Service) compare(ctx context.Context, games map[int64]struct{}) error {
	gone, err := s.findGone(ctx, games)
	if len(gone) == 0 {
		return err
	}
	m, metaErr := s.store.readMeta(ctx)
	if metaErr != nil {
		return metaErr
	}
	if m.installation != s.known.Installation || m.stopped != "" {
		return s.lookAtMeta(ctx)
	}
	return s.lose(ctx, m, gone)
}

// findGone returns the games that lack entries that were seen. It remembers the newest entries of
// the others.
func (s *Service) findGone(ctx context.Context, games map[int64]struct{}) (gone []goneGame, err error) {
	if len(games) == 0 {
		return nil, nil
	}
	numbers := make(map[int64]int64, len(games))
	for id := range games {
		numbers[id] = 0
		if g := s.games[id]; g != nil {
			numbers[id] = g.newest().Number
		}
	}
	found, err := s.store.readLedgers(ctx, numbers)
	now := time.Now()
	for id, l := range found {
		g := s.games[id]
		if g == nil {
			g = &gameHistory{}
			g.see(l, now)
			s.games[id] = g
			continue
		}
		mark := g.newest()
		if mark.Number <= l.last && (mark.Number <= l.base || mark.Head == l.headAtMark) {
			if s.doubt {
				count, countErr := s.countGone(ctx, id, g, l)
				if countErr != nil {
					return nil, countErr
				}
				if count > 0 {
					gone = append(gone, goneGame{Loss{
						GameID: id, Known: l.last + count, Present: l.last, At: now.UTC(),
					}, true, l})
					continue
				}
			}
			g.see(l, now)
			continue
		}
		lost, lossErr := s.examine(ctx, id, g, l, now)
		if lossErr != nil {
			return nil, lossErr
		}
		gone = append(gone, lost)
	}
	if err != nil { // those that could not be read are looked at again
		for id := range games {
			if _, ok := found[id]; !ok {
				s.Touch(id)
			}
		}
	}
	return gone, err
}

// examine finds out how far back the history of a game went.
func (s *Service) examine(ctx context.Context, id int64, g *gameHistory, l ledger, now time.Time) (goneGame, error) {
	newest := g.newest()
	lost := goneGame{Loss: Loss{GameID: id, Known: newest.Number, Present: l.last, At: now.UTC()}, now: l}
	// An entry that is older than all that are remembered, and recent all the same, is no entry of
	// another history.
	oldest := g.slots[0]
	lost.recent = l.last < oldest.Number && !timeOf(l.head).After(timeOf(oldest.Head)) &&
		now.Sub(timeOf(l.head)) <= maxRecentLoss ||
		!g.firstAt.IsZero() && now.Sub(g.firstAt) <= maxRecentLoss
	for i := len(g.slots) - 2; i >= 0; i-- {
		at, err := s.store.readLedgers(ctx, map[int64]int64{id: g.slots[i].Number})
		if err != nil {
			return goneGame{}, err
		}
		next := g.slots[i+1]
		if at[id].headAtMark == g.slots[i].Head || g.slots[i].Number <= l.base {
			lost.recent = lost.recent || now.Sub(next.since) <= maxRecentLoss
			lost.Present = min(lost.Present, max(g.slots[i].Number, next.Number-1))
			break
		}
		lost.Present = min(lost.Present, g.slots[i].Number-1)
	}
	return lost, nil
}

func listLosses(gone []goneGame) (list []Loss) {
	for _, g := range gone {
		list = append(list, g.Loss)
	}
	slices.SortFunc(list, func(a, b Loss) int { return int(a.GameID - b.GameID) })
	return list
}

// lose notes what is gone: money goes on if a failover may have lost it.
func (s *Service) lose(ctx context.Context, m meta, gone []goneGame) error {
	if slices.ContainsFunc(gone, func(g goneGame) bool { return !g.recent }) {
		return s.stop(ctx, m, Older, listLosses(gone))
	}
	if err := s.beginEpoch(ctx, listLosses(gone)); err != nil {
		return err
	}
	now := time.Now()
	for _, g := range gone {
		s.games[g.GameID] = &gameHistory{}
		s.games[g.GameID].see(g.now, now)
		delete(s.batches, g.GameID)
	}
	return nil
}

// beginEpoch writes down what was lost and tells clients what is there.
func (s *Service) beginEpoch(ctx context.Context, losses []Loss) error {
	epoch, err := s.store.advance(ctx, s.known.Epoch, losses)
	if err != nil {
		return err
	}
	if err := s.loadLosses(ctx, s.accepted); err != nil {
		return err
	}
	s.known.Epoch = epoch
	s.noticed++
	if len(losses) == 0 {
		s.log.Error("the history of the store went back, and this node misses no entry", "epoch", epoch)
	}
	for _, l := range losses {
		s.log.Error("the store lost ledger entries", "epoch", epoch, "game", l.GameID, "missing_at_least", l.Entries(),
			"known", l.Known, "present", l.Present)
	}
	s.options.Resync()
	return nil
}

// stop stops money here at once, and on the other nodes when the store takes the record.
func (s *Service) stop(ctx context.Context, m meta, cause Cause, missing []Loss) error {
	s.stopped = &Stop{
		Cause: cause, At: time.Now().UTC(), Node: s.options.Node, Installation: s.known.Installation,
		Epoch: s.known.Epoch,
	}
	s.seenEpoch, s.missing, s.flagged = m.epoch, missing, false
	s.publish()
	s.log.Error(s.stopped.Sentence(), "cause", string(cause), "installation", s.known.Installation,
		"found", m.installation, "epoch", s.known.Epoch, "found_epoch", m.epoch)
	for _, l := range missing {
		s.log.Error("ledger entries are missing", "game", l.GameID, "missing_at_least", l.Entries(),
			"known", l.Known, "present", l.Present)
	}
	return s.flag(ctx)
}

// flag writes the stop into the store, for the other nodes. What fails is tried again.
func (s *Service) flag(ctx context.Context) error {
	if s.flagged {
		return nil
	}
	flagged, err := s.store.stop(ctx, s.seenEpoch, *s.stopped, s.known.Epoch+1, s.missing)
	if s.flagged = flagged; err != nil {
		s.log.Warn("the other nodes cannot be told that money is stopped", "error", err)
	}
	return nil
}

// adoptStop stops money because another node did. What this node misses is written down too.
func (s *Service) adoptStop(ctx context.Context, m meta) error {
	var record Stop
	if err := wire.Unmarshal([]byte(m.stopped), &record); err != nil {
		return fmt.Errorf("decode why money is stopped: %w", err)
	}
	s.stopped, s.seenEpoch, s.flagged = &record, m.epoch, false
	s.publish()
	s.log.Error(record.Sentence(), "cause", string(record.Cause), "noticed_by", record.Node)
	gone, err := s.findGone(ctx, s.allGames())
	if err != nil {
		return err
	}
	s.missing = listLosses(gone)
	return s.flag(ctx)
}

// lookWhileStopped goes on when an operator has accepted the store, or the right one is back.
func (s *Service) lookWhileStopped(ctx context.Context, m meta) error {
	switch {
	case m.stopped == "" && m.installation != "" && m.accepted == m.epoch && m.epoch > s.seenEpoch:
		return s.goOn(ctx, m)
	case m.stopped != "":
		return s.flag(ctx)
	case m.installation == s.known.Installation && m.epoch >= s.known.Epoch && s.stopped.Installation == m.installation:
		gone, err := s.findGone(ctx, s.allGames())
		if err != nil {
			return err
		}
		if len(gone) == 0 && s.hasMissing(ctx) {
			if err := s.options.Prepare(ctx); err != nil { // what is known may be of the store in between
				return err
			}
			s.log.Warn("the right store is back, and money goes on", "epoch", m.epoch)
			s.stopped, s.missing, s.known.Epoch = nil, nil, m.epoch
			s.options.Resync()
			return nil
		}
	}
	s.seenEpoch = m.epoch
	return s.flag(ctx)
}

// hasMissing reports whether the store has again what was missing when money was stopped.
func (s *Service) hasMissing(ctx context.Context) bool {
	numbers := map[int64]int64{}
	for _, l := range s.missing {
		numbers[l.GameID] = l.Known
	}
	found, err := s.store.readLedgers(ctx, numbers)
	for id, number := range numbers {
		if found[id].last < number {
			return false
		}
	}
	return err == nil
}

// goOn takes what the store has for the history, because an operator accepted it.
func (s *Service) goOn(ctx context.Context, m meta) error {
	if err := s.options.Prepare(ctx); err != nil {
		return err
	}
	if err := s.loadLosses(ctx, m.accepted); err != nil {
		return err
	}
	s.log.Warn("an operator accepted the store, and money goes on", "installation", m.installation, "epoch", m.epoch)
	s.known = mark{Installation: m.installation, Epoch: m.epoch}
	all := s.allGames()
	s.games, s.batches, s.stopped, s.missing = map[int64]*gameHistory{}, map[int64][]batch{}, nil, nil
	for id := range all {
		s.Touch(id)
	}
	s.options.Resync()
	return nil
}

// tips returns the newest entries that were seen.
func (s *Service) tips() map[int64]tipDoc {
	tips := make(map[int64]tipDoc, len(s.games))
	for id, g := range s.games {
		tips[id] = g.newest().tipDoc
	}
	return tips
}

// writeMark writes what is known to where it does not fail over with the money. Nodes on a Cluster
// share their marks: each takes over what the others know.
func (s *Service) writeMark(ctx context.Context, now time.Time) {
	if s.stopped != nil || s.known.Installation == "" {
		return
	}
	m := mark{Installation: s.known.Installation, Epoch: s.known.Epoch, Node: s.options.Node, Games: s.tips()}
	state := fmt.Sprint(m.Installation, m.Epoch, len(m.Games), m.Games)
	if state == s.lastMark {
		return
	}
	m.At = now.UTC()
	key := s.options.SigningKeys[0]
	text, err := encodeMark(m, key)
	if err == nil {
		err = s.files.write(text)
	}
	if err == nil {
		err = s.writeSharedMark(ctx, m, key)
	}
	if err != nil {
		if s.markError != err.Error() {
			s.log.Error("the mark of the history cannot be written", "error", err)
		}
		s.markError = err.Error()
		return
	}
	if s.lastMark == "" {
		s.files.removeStale()
	}
	s.markError, s.lastMark = "", state
}

func (s *Service) writeSharedMark(ctx context.Context, m mark, key []byte) error {
	texts, err := s.store.readMarks(ctx)
	if err != nil {
		return err
	}
	m.Games = maps.Clone(m.Games)
	for _, text := range texts {
		other, err := decodeMark(text, s.options.SigningKeys)
		if err == nil && other.Installation == m.Installation && other.Epoch == m.Epoch {
			m.include(other)
		}
	}
	text, err := encodeMark(m, key)
	if err != nil {
		return err
	}
	return s.store.writeMarks(ctx, text)
}

// publish makes what is known visible to other goroutines.
func (s *Service) publish() {
	stats := Stats{Epoch: s.known.Epoch, Losses: s.noticed, Stopped: s.stopped != nil}
	check := Check{Name: "history", OK: true, Detail: "nothing is known to be missing"}
	var moneyError *apierror.Error
	for _, l := range s.losses {
		stats.EntriesLost += l.Entries()
	}
	switch {
	case s.stopped != nil:
		check = Check{Name: "history", Detail: s.stopped.Sentence()}
		moneyError = apierror.StoreUnavailable.WithReason("%s", s.stopped.Sentence())
	case len(s.losses) > 0:
		check = Check{Name: "history", Detail: "the store lost at least " + countMissing(s.losses) +
			"; parlor store status tells more, parlor store accept ends this message"}
	}
	checks := []Check{check}
	if s.options.StateDir != "" || s.markError != "" {
		m := Check{Name: "mark", OK: s.markError == "", Detail: "is written"}
		if !m.OK {
			m.Detail = "the mark of the history could not be read or written; the log of the node tells why"
		}
		checks = append(checks, m)
	}
	s.moneyError.Store(moneyError)
	s.checks.Store(&checks)
	s.stats.Store(&stats)
}
