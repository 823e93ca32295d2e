package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

const (
	pollInterval    = 200 * time.Millisecond // between two looks at the games that this node changed
	metaInterval    = time.Second            // between two looks at the installation's record, and two marks
	compareInterval = 30 * time.Second       // between two looks at all games
	lookTimeout     = 2 * time.Second
	countTimeout    = time.Second // for the entries of a game that are gone

	// maxRecentLoss bounds the age, when the store was seen last, of an entry that a failover or a
	// crash can lose. A store that lost older entries has another history.
	maxRecentLoss = time.Minute
	slotSpan      = 2 * time.Second // what one remembered entry stands for
	maxSlots      = 40
)

// Halt is the reason why no money moves.
type Halt struct {
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
	Older   Cause = "older"   // it lacks entries that no failover can have lost, or the first ones
)

// Sentence describes the halt for anyone to read.
func (s Halt) Sentence() string {
	text := map[Cause]string{
		Empty:   "the store is empty, and was not before",
		Foreign: "the store belongs to another installation than before",
		Older:   "the store has an older history than before",
	}[s.Cause]
	return "money is stopped: " + text + "; an operator can accept it with: parlor store accept"
}

// describeLosses describes the missing entries of games: those that nodes had acknowledged, and
// those that no caller had got a response to.
func describeLosses(losses []Loss) string {
	var acknowledged, others, untold int64
	games, untoldGames := map[int64]bool{}, map[int64]bool{}
	isExact := true
	for _, l := range losses {
		switch {
		case l.GameID == 0:
		case l.IsUnacknowledged():
			untold += l.Entries()
			untoldGames[l.GameID] = true
		case l.Acknowledged == nil:
			acknowledged += l.Entries()
			games[l.GameID], isExact = true, false
		default:
			acknowledged += *l.Acknowledged
			others += l.Entries() - *l.Acknowledged
			games[l.GameID] = true
		}
	}
	var parts []string
	switch {
	case acknowledged > 0 && isExact:
		parts = append(parts, fmt.Sprintf("the store lost %d acknowledged ledger entries of %d games", acknowledged,
			len(games)))
	case acknowledged > 0:
		parts = append(parts, fmt.Sprintf("the store lost at least %d ledger entries of %d games", acknowledged, len(games)))
	}
	if untold += others; untold > 0 {
		for id := range untoldGames {
			games[id] = true
		}
		parts = append(parts, fmt.Sprintf("%d ledger entries of %d games that nobody was told of are gone", untold,
			len(games)))
	}
	return strings.Join(parts, ", and ")
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
	// AcknowledgedLost is how many of these nodes had acknowledged to callers, or may have.
	AcknowledgedLost int64
	Stopped          bool
}

// Options are the settings of a node.
type Options struct {
	StateDir    string   // folder of this node's mark; "" for none
	SigningKeys [][]byte // the first signs marks, all verify; not empty
	Node        string   // name of the node in records
	Log         *slog.Logger
	// IsConfirmed says that nodes acknowledge only what a replica has: the mode replica.
	IsConfirmed bool
	// MaxRecentLoss is how old an entry may be that a failover loses; 0 for a minute.
	MaxRecentLoss time.Duration
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
	signingKeys atomic.Pointer[[][]byte] // the first signs marks, all verify
	store       store
	files       markFiles
	options     Options
	log         *slog.Logger

	moneyError atomic.Pointer[apierror.Error] // of every change of money, nil while money goes on
	checks     atomic.Pointer[[]Check]
	stats      atomic.Pointer[Stats]
	lostIn     atomic.Pointer[map[int64]int64] // epoch of the last loss by game

	touchedMu    sync.Mutex
	touched      map[int64]struct{}          // games that this node changed since the last look
	acknowledged map[int64]*acknowledgements // by game, since the last look

	// Of the goroutine of Run.
	known         mark // Games is not used: games has them
	games         map[int64]*gameHistory
	batches       map[int64][]batch // of acknowledged entries by game
	lossSuspected bool              // a server failed since all games were compared
	suspectedAt   time.Time         // when that was known
	tookAt        time.Time         // when the last look began
	id            string            // of this process, in the records of losses
	stopped       *Halt
	missing       []Loss // when money was stopped
	seenEpoch     int64  // of the store when money was stopped
	flagged       bool   // the halt is in the store
	accepted      int64  // last epoch that an operator accepted
	losses        []Loss // since then
	noticed       int64
	markError     string
	lastMark      string
	changes       uint64
}

// gameHistory is what a node remembers of a ledger.
type gameHistory struct {
	tips   []seenTip // oldest first, never empty but while the first look has found a loss
	first  string    // head of entry 1, "" when it is not known
	tipAt  time.Time // when the newest entry was seen first
	seenAt time.Time // when the newest entry was seen last
}

// seenTip is the last entry that was seen in a span of time.
type seenTip struct {
	tipDoc
	since time.Time // when the span began
}

func (g *gameHistory) newest() seenTip { return g.tips[len(g.tips)-1] }

// see remembers an entry that was seen now, by a look that began before.
func (g *gameHistory) see(l ledger, began, now time.Time) {
	tip := tipDoc{l.last, l.head}
	if l.firstHead != "" {
		g.first = l.firstHead
	}
	g.seenAt = now
	if len(g.tips) == 0 || g.newest().tipDoc != tip {
		g.tipAt = now
	}
	switch n := len(g.tips); {
	case n > 0 && g.tips[n-1].tipDoc == tip:
	case n > 1 && began.Sub(g.tips[n-1].since) < slotSpan:
		g.tips[n-1].tipDoc = tip
	default:
		g.tips = append(g.tips, seenTip{tip, began})
		if len(g.tips) > maxSlots {
			g.tips = slices.Delete(g.tips, 0, 1)
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
	if o.MaxRecentLoss == 0 {
		o.MaxRecentLoss = maxRecentLoss
	}
	s := &Service{
		id:    strconv.FormatUint(rand.Uint64(), 36),
		store: store{db}, files: newMarkFiles(o.StateDir), options: o, log: o.Log,
		touched: map[int64]struct{}{}, acknowledged: map[int64]*acknowledgements{}, games: map[int64]*gameHistory{},
		batches: map[int64][]batch{},
	}
	s.signingKeys.Store(&o.SigningKeys)
	s.moneyError.Store(apierror.StoreUnavailable.WithReason("the history of the money is not known yet"))
	s.checks.Store(&[]Check{{Name: "history", Detail: "is not known yet"}})
	s.stats.Store(&Stats{})
	s.lostIn.Store(&map[int64]int64{})
	return s
}

// SetSigningKeys replaces the keys, as in Options. The next mark is signed by the new ones.
func (s *Service) SetSigningKeys(signingKeys [][]byte) { s.signingKeys.Store(&signingKeys) }

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
	s.acknowledged = make(map[int64]*acknowledgements, len(acknowledged))
	s.touchedMu.Unlock()
	s.tookAt = time.Now()
	s.takeAcknowledged(acknowledged, s.tookAt)
	return touched
}

// Start compares the store with the marks. It returns an error when the store cannot be read, and
// must then be called again. A store that does not match is not an error: Start stops money.
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
			if changes != s.changes {
				s.suspectLoss(now)
			}
			all := lastCompare.IsZero() || s.lossSuspected || now.Sub(lastCompare) >= compareInterval || s.stopped != nil
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
				lastCompare, s.changes, s.lossSuspected = now, changes, false
			}
			if !s.lossSuspected {
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
			s.suspectLoss(now)
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

// suspectLoss notes that a server may have lost something.
func (s *Service) suspectLoss(now time.Time) {
	if !s.lossSuspected {
		s.lossSuspected, s.suspectedAt = true, now
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
		return s.adoptHalt(ctx, m)
	}
	if m.installation == "" && len(marks) == 0 || m.installation != "" && m.epoch == 0 {
		if err := s.store.createInstallation(ctx); err != nil { // a new installation, or one of an earlier release
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
			return s.halt(ctx, m, cause, lossesOf(k))
		case k.Installation == m.installation && k.Epoch > m.epoch:
			s.known = k.clone()
			merged.include(k)
		case k.Installation == m.installation && k.Epoch == m.epoch:
			merged.include(k)
		} // the others are older than what was noticed or accepted since
	}
	now := time.Now()
	for id, tip := range merged.Games {
		s.games[id] = &gameHistory{tips: []seenTip{{tip, now}}}
	}
	gone, err := s.findGone(ctx, s.allGames())
	if err != nil {
		s.games = map[int64]*gameHistory{}
		return err
	}
	if len(gone) > 0 || s.known.Epoch > m.epoch {
		return s.halt(ctx, m, Older, listLosses(gone))
	}
	if m.stopped != "" {
		return s.adoptHalt(ctx, m)
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
		return s.adoptHalt(ctx, m)
	case m.installation != s.known.Installation && m.installation != "" && m.replaces(s.known.Installation):
		return s.goOn(ctx, m)
	case m.installation != s.known.Installation:
		k := s.known
		k.Games = s.tips()
		cause := Foreign
		if m.installation == "" {
			cause = Empty
		}
		return s.halt(ctx, m, cause, lossesOf(k))
	case m.epoch < s.known.Epoch: // the record itself went back
		return s.beginEpoch(ctx, nil)
	case m.epoch > s.known.Epoch: // another node, or an operator, has begun one
		if m.accepted >= m.epoch {
			return s.goOn(ctx, m)
		}
		s.suspectLoss(time.Now())
		gone, err := s.findGone(ctx, s.allGames())
		if err != nil {
			return err
		}
		return s.lose(ctx, m, gone)
	case len(s.losses) > 0: // another node may have said more of them
		return s.loadLosses(ctx, m.accepted)
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
	goesOn bool // a failover may have lost it, and no more
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
	return errors.Join(s.lose(ctx, m, gone), err) // with an error the other games are looked at again
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
			s.games[id] = g
		}
		lost, lossErr := s.findLoss(ctx, id, g, l, now)
		switch {
		case lossErr != nil:
			err = lossErr
			delete(found, id)
		case lost != nil:
			gone = append(gone, *lost)
		default:
			g.see(l, s.tookAt, now)
		}
		if len(g.tips) == 0 {
			delete(s.games, id)
		}
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

// findLoss compares the ledger of a game with the entries that this node remembers. It returns nil
// when nothing is missing.
func (s *Service) findLoss(ctx context.Context, id int64, g *gameHistory, l ledger, now time.Time) (*goneGame, error) {
	if len(g.tips) > 0 {
		if tip := g.newest(); tip.Number > l.last || tip.Number > l.base && tip.Head != l.headAtMark {
			return s.examine(ctx, id, g, l, now)
		}
	}
	if !s.lossSuspected || s.stopped != nil && s.flagged {
		return nil, nil
	}
	gone, there, err := s.countGone(ctx, id, g, l, l.last, s.suspectedSince())
	if err != nil || gone == 0 {
		return nil, err
	}
	lost := &goneGame{Loss: Loss{
		GameID: id, Known: l.last + gone, Present: l.last, At: now.UTC(),
	}, now: l}
	// The first entries are there when this node knows one of those that are, or, in a game that it
	// has never looked at, when there is one that is older than any that it acknowledged.
	switch {
	case len(g.tips) > 0 && g.newest().Number > 0, there > 0:
		lost.goesOn = true
	case len(g.tips) == 0:
		first := timeOf(l.firstHead)
		lost.goesOn = l.base > 0 || !first.IsZero() && s.batches[id][0].began.Sub(first) > noticeTime
	}
	if lost.goesOn {
		lost.Acknowledged = &gone
	}
	return lost, nil
}

// examine finds out how far back the history of a game went.
func (s *Service) examine(ctx context.Context, id int64, g *gameHistory, l ledger, now time.Time) (*goneGame, error) {
	newest, oldest := g.newest(), g.tips[0]
	lost := &goneGame{Loss: Loss{GameID: id, Known: newest.Number, Present: l.last, At: now.UTC()}, now: l}
	intact := -1 // the newest slot that is there
	for i := len(g.tips) - 2; i >= 0 && intact < 0; i-- {
		at, err := s.store.readLedgers(ctx, map[int64]int64{id: g.tips[i].Number})
		if err != nil {
			return nil, err
		}
		if at[id].headAtMark == g.tips[i].Head || g.tips[i].Number <= l.base {
			lost.Present = min(lost.Present, max(g.tips[i].Number, g.tips[i+1].Number-1))
			intact = i
		} else {
			lost.Present = min(lost.Present, g.tips[i].Number-1)
		}
	}
	// What is left is older than all that is remembered, and so it is no other history.
	isOlder := l.last > 0 && l.last < oldest.Number && !timeOf(l.head).After(timeOf(oldest.Head))
	lastSeen := timeOf(newest.Head).Add(g.seenAt.Sub(g.tipAt)) // by the clock of the store
	hasFirst, isRecent, after := false, false, time.Time{}
	switch {
	case intact >= 0:
		after = g.tips[intact+1].since
		hasFirst = g.tips[intact].Number > 0 || g.first != "" && g.first == l.firstHead
		isRecent = g.seenAt.Sub(after) <= s.options.MaxRecentLoss
	case g.first != "" && g.first == l.firstHead:
		hasFirst = true
		isRecent = lastSeen.Sub(timeOf(g.first)) <= s.options.MaxRecentLoss ||
			isOlder && lastSeen.Sub(timeOf(l.head)) <= s.options.MaxRecentLoss
	case isOlder && (g.first == "" || l.base > 0):
		hasFirst, isRecent = true, lastSeen.Sub(timeOf(l.head)) <= s.options.MaxRecentLoss
	}
	lost.goesOn = hasFirst && isRecent
	if s.stopped != nil && s.flagged {
		return lost, nil // what it misses is written down
	}
	if s.lossSuspected && !after.IsZero() && s.suspectedSince().Before(after) {
		after = s.suspectedSince()
	}
	counting, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	count, _, err := s.countGone(counting, id, g, l, lost.Present, after)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil: // the loss matters more than its count
		return lost, nil
	case err != nil:
		return nil, err
	}
	lost.Known = max(lost.Known, lost.Present+count)
	// What a replica did not confirm nobody was told of, however old it is.
	lost.goesOn = lost.goesOn || s.options.IsConfirmed && intact >= 0 && count == 0
	// Else it may be older than what this node remembers of callers, or than the node itself.
	if lost.goesOn && (count > 0 || intact >= 0) {
		lost.Acknowledged = &count
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
	if slices.ContainsFunc(gone, func(g goneGame) bool { return !g.goesOn }) {
		return s.halt(ctx, m, Older, listLosses(gone))
	}
	if err := s.beginEpoch(ctx, listLosses(gone)); err != nil {
		return err
	}
	now := time.Now()
	for _, g := range gone {
		s.games[g.GameID] = &gameHistory{}
		s.games[g.GameID].see(g.now, s.tookAt, now)
		delete(s.batches, g.GameID)
	}
	return nil
}

// beginEpoch writes down what was lost and tells clients what is there.
func (s *Service) beginEpoch(ctx context.Context, losses []Loss) error {
	epoch, err := s.store.advance(ctx, s.id, s.known.Epoch, losses)
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
		s.logLoss(l, epoch)
	}
	s.options.Resync()
	return nil
}

// logLoss writes what a game lacks into the log.
func (s *Service) logLoss(l Loss, epoch int64) {
	known := []any{"epoch", epoch, "game", l.GameID, "known", l.Known, "present", l.Present}
	switch {
	case l.IsUnacknowledged():
		s.log.Warn("ledger entries that nobody was told of are gone", append(known, "missing_at_least", l.Entries())...)
	case l.Acknowledged == nil:
		s.log.Error("the store lost ledger entries", append(known, "missing_at_least", l.Entries())...)
	default:
		s.log.Error("the store lost acknowledged ledger entries",
			append(known, "missing_at_least", l.Entries(), "acknowledged_here", *l.Acknowledged)...)
	}
}

// halt stops money here at once, and on the other nodes when the store takes the record.
func (s *Service) halt(ctx context.Context, m meta, cause Cause, missing []Loss) error {
	s.stopped = &Halt{
		Cause: cause, At: time.Now().UTC(), Node: s.options.Node, Installation: s.known.Installation,
		Epoch: s.known.Epoch,
	}
	s.seenEpoch, s.missing, s.flagged = m.epoch, missing, false
	s.publish()
	s.log.Error(s.stopped.Sentence(), "cause", string(cause), "installation", s.known.Installation,
		"found", m.installation, "epoch", s.known.Epoch, "found_epoch", m.epoch)
	for _, l := range missing {
		s.logLoss(l, s.known.Epoch+1)
	}
	return s.flag(ctx)
}

// flag writes the halt into the store, where the other nodes read it. A failed write is tried
// again.
func (s *Service) flag(ctx context.Context) error {
	if s.flagged {
		return nil
	}
	flagged, err := s.store.halt(ctx, s.id, s.seenEpoch, *s.stopped, s.known.Epoch+1, s.missing)
	if s.flagged = flagged; err != nil {
		s.log.Warn("the other nodes cannot be told that money is stopped", "error", err)
	}
	return nil
}

// adoptHalt stops money because another node did. What this node misses is written down too.
func (s *Service) adoptHalt(ctx context.Context, m meta) error {
	var record Halt
	if err := wire.Unmarshal([]byte(m.stopped), &record); err != nil {
		return fmt.Errorf("decode why money is stopped: %w", err)
	}
	s.stopped, s.seenEpoch, s.flagged = &record, m.epoch, false
	s.publish()
	s.log.Error(record.Sentence(), "cause", string(record.Cause), "noticed_by", record.Node)
	s.suspectLoss(time.Now())
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

// writeMark writes the known state of the history to a place that does not fail over together with
// the money. Nodes on a Cluster share their marks and merge those of the others.
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
	key := (*s.signingKeys.Load())[0]
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
		other, err := decodeMark(text, *s.signingKeys.Load())
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
	isUntold := true
	for _, l := range s.losses {
		stats.EntriesLost += l.Entries()
		if l.Acknowledged == nil {
			stats.AcknowledgedLost += l.Entries()
		} else {
			stats.AcknowledgedLost += *l.Acknowledged
		}
		isUntold = isUntold && l.IsUnacknowledged()
	}
	switch {
	case s.stopped != nil:
		check = Check{Name: "history", Detail: s.stopped.Sentence()}
		moneyError = apierror.StoreUnavailable.WithReason("%s", s.stopped.Sentence())
	case len(s.losses) > 0:
		check = Check{Name: "history", OK: isUntold, Detail: describeLosses(s.losses) +
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
