package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/books"
	"github.com/parlor-games/parlor/tests/testkit"
)

// process is one request on one node. It stands still before every call of the store until the
// history lets it go on.
type process struct {
	number int
	node   *node
	call   *call

	asks    chan struct{} // it stands before a step
	answers chan action
	ended   chan struct{}
	over    chan struct{} // nobody listens any more

	next   string // the step before which it stands
	dead   bool   // it died, also when its function has not returned yet
	result string // what its client would hear
}

// action is what happens to a process at a step.
type action int

const (
	goOn      action = iota // the step is executed
	resend                  // it is executed, its reply is lost, and later it is executed again
	dieBefore               // the process ends before the step
	dieAfter                // the process ends when the step is executed and the reply was not read
)

func (a action) String() string { return []string{"", " reply lost", " dies before", " dies after"}[a] }

// step is keeper.
func (p *process) step(name string, do func() error) error {
	for {
		if p.dead {
			return errKilled
		}
		p.next = name
		select {
		case p.asks <- struct{}{}:
		case <-p.over:
			return errKilled
		}
		var a action
		select {
		case a = <-p.answers:
		case <-p.over:
			return errKilled
		}
		switch a {
		case goOn:
			return do()
		case dieBefore:
			p.dead = true
		case dieAfter:
			_ = do()
			p.dead = true
		case resend:
			if err := do(); err != nil {
				return err
			}
			name = "again " + strings.TrimPrefix(name, "again ")
		}
	}
}

// schedule is one order of the steps of some processes.
type schedule struct {
	t        *testing.T
	rng      *rand.Rand
	games    []*gameSchedule
	observer *node
	idle     []*node
	running  []*process
	trace    []string
	counts   map[string]int // of what happened
}

// gameSchedule is what the requests of one game are made of.
type gameSchedule struct {
	caller *caller
	calls  []*call
	books  books.Books
}

// orderKinds are kinds, and what moves old entries to the archive.
var orderKinds = append(slices.Clone(kinds), "archive", "archive", "archive", "archive")

const (
	orderGames   = 2
	processes    = 5 // that run at the same time
	historySteps = 150
	orderPlayers = 5
)

// TestEveryOrderOfStepsConservesMoney makes up histories of requests on several nodes. It decides
// before each call of the store which request goes on, and which node dies, stands still while
// others go on, or sends again what was executed. After each step it adds up everything.
func TestEveryOrderOfStepsConservesMoney(t *testing.T) {
	store := redistest.StartForTest(t)
	observer := openNode(t, store.URL(), nil)
	var nodes []*node
	for range processes {
		nodes = append(nodes, openNode(t, store.URL(), &gate{}))
	}
	defer shortTimes.Store(false)
	counts := map[string]int{}
	for number := uint64(0); counts["steps"] < pick(1_500, 100_000); number++ {
		h := &schedule{t: t, observer: observer, idle: slices.Clone(nodes), counts: counts, rng: newRNG(number)}
		first := makeEconomy(t, observer, orderPlayers)
		for game := range int64(orderGames) {
			e := first
			if game > 0 {
				e = addGame(t, observer, gameID+game, first.tokenID, orderPlayers)
			}
			h.games = append(h.games, &gameSchedule{caller: &caller{rng: h.rng, economy: e, players: orderPlayers}})
		}
		dir := t.TempDir()
		for _, n := range append([]*node{observer}, nodes...) {
			n.archive = openArchive(t, dir)
			n.forgetCaches()
		}
		h.run()
		if t.Failed() {
			return
		}
		counts["histories"]++
	}
	var finished []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		if rest, ok := strings.CutPrefix(kind, "ok "); ok {
			finished = append(finished, fmt.Sprintf("%s %d", rest, counts[kind]))
		}
	}
	report(t, "%d steps in %d histories of %d nodes and %d games, %d node deaths, %d lost replies, "+
		"%d replaced leaders refused, %d entries in the archive, 0 violations; succeeded: %s",
		counts["steps"], counts["histories"], processes, orderGames, counts["deaths"], counts["resends"],
		counts["replaced leaders"], counts["archived"], strings.Join(finished, ", "))
	for _, kind := range orderKinds {
		if counts["ok "+kind] == 0 && *long {
			t.Errorf("no %s succeeded", kind)
		}
	}
}

func (h *schedule) fatal(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("%s\nthe steps:\n%s", fmt.Sprintf(format, args...), strings.Join(h.trace, "\n"))
}

func (h *schedule) run() {
	defer func() { // after a failure too: nothing may wait for its next step
		for _, p := range h.running {
			close(p.over)
		}
	}()
	h.check()
	for range historySteps {
		h.disturb()
		if len(h.idle) > 0 && (len(h.running) == 0 || h.rng.IntN(100) < 40) {
			h.start()
			continue
		}
		// Processes of low number are chosen less often, so that some stand still for long.
		i := max(h.rng.IntN(len(h.running)), h.rng.IntN(len(h.running)))
		h.advance(h.running[i], h.drawAction())
	}
	for len(h.running) > 0 {
		h.advance(h.running[0], goOn)
	}
	shortTimes.Store(false)
	for _, g := range h.games {
		b := wantEndedIn(h.t, h.observer, g.caller.economy.game)
		if err := checkOnce(g.calls, b); err != nil {
			h.fatal("%v", err)
		}
		h.counts["archived"] += int(b.Archived)
	}
}

func (h *schedule) drawAction() action {
	switch n := h.rng.IntN(100); {
	case n < 5:
		return dieBefore
	case n < 10:
		return dieAfter
	case n < 18:
		return resend
	default:
		return goOn
	}
}

// disturb changes what surrounds the nodes: time passes, a lease ends.
func (h *schedule) disturb() {
	ctx := h.t.Context()
	switch n := h.rng.IntN(100); {
	case n < 5: // the leader of the sweep is still at work, and another node becomes the leader
		h.observer.db.Client.Del(ctx, keys.Lock("rooms"))
	case n < 7:
		shortTimes.Store(!shortTimes.Load())
	case n < 10:
		for _, g := range h.games {
			overdue(h.t, h.observer.db, g.books)
		}
	}
}

// start begins a request on an idle node: a new one, or one that is repeated with its key while the
// first is still on its way.
func (h *schedule) start() {
	number := h.rng.IntN(len(h.games))
	g, other := h.games[number], h.games[(number+1)%len(h.games)]
	var c *call
	if len(g.calls) > 0 && g.caller.chance(25) {
		if before := g.calls[max(0, len(g.calls)-1-h.rng.IntN(6))]; before.key != "" {
			c = before
		}
	}
	if c == nil {
		g.caller.foreign = other.books.LiveRooms()
		c = g.caller.make(orderKinds[h.rng.IntN(len(orderKinds))], g.books)
		g.calls = append(g.calls, c)
	}
	n := h.idle[0]
	h.idle = h.idle[1:]
	h.counts["requests"]++
	p := &process{
		number: h.counts["requests"], node: n, call: c, asks: make(chan struct{}), answers: make(chan action),
		ended: make(chan struct{}), over: make(chan struct{}),
	}
	n.gate.watch(p)
	h.running = append(h.running, p)
	h.trace = append(h.trace, fmt.Sprintf("%d begins %s", p.number, c))
	ctx := h.t.Context()
	go func() {
		defer close(p.ended)
		p.result = c.send(ctx, n)
	}()
	h.listen(p)
}

// listen waits until a process stands before a step or has ended.
func (h *schedule) listen(p *process) {
	select {
	case <-p.asks:
		return
	case <-p.ended:
	}
	close(p.over)
	p.node.gate.watch(nil)
	h.running = slices.DeleteFunc(h.running, func(other *process) bool { return other == p })
	if p.dead {
		p.node.forgetCaches() // another process has its place
	} else {
		p.call.results[p.result]++
		if _, ok := cutOK(p.result); ok {
			h.counts["ok "+p.call.kind]++
		}
		switch {
		case p.result == "internal: another leader has taken over": // the fence held
			h.counts["replaced leaders"]++
		case strings.HasPrefix(p.result, "internal"):
			h.fatal("%s: %s", p.call, p.result)
		}
		h.trace = append(h.trace, fmt.Sprintf("%d got %s", p.number, p.result))
	}
	h.idle = append(h.idle, p.node)
}

// advance lets a process make its step, and checks the books.
func (h *schedule) advance(p *process, a action) {
	h.trace = append(h.trace, fmt.Sprintf("%d %s%s", p.number, p.next, a))
	h.counts["steps"]++
	switch a {
	case dieBefore, dieAfter:
		h.counts["deaths"]++
	case resend:
		h.counts["resends"]++
	}
	p.answers <- a
	h.listen(p)
	h.check()
}

func (h *schedule) check() {
	for _, g := range h.games {
		b, err := books.Read(h.t, h.observer.db, g.caller.economy.game)
		if err == nil {
			err = b.AddArchived(h.t.Context(), h.observer.archive)
		}
		if err == nil {
			err = b.Check()
		}
		if err != nil {
			h.fatal("the books of game %d are wrong:\n%v", g.caller.economy.game, err)
		}
		g.books = b
	}
}

// openArchive opens an archive of small objects in a folder.
func openArchive(t testing.TB, dir string) *archive.Archive {
	t.Helper()
	a := testkit.Must(archive.Open("file://"+dir, archive.S3Options{}))(t)
	return a.WithSizes(smallSizes)
}
