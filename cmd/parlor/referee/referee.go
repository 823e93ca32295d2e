// Package referee is the game server of the demo at /play: it rolls the dice of a race and reports
// the winner.
//
// It is an example of a game's own server, on the library sdk/go: it dials in with a server key,
// and knows no domain and no store. The page calls it for each roll, because a page that rolled its
// own dice could always roll the best. It never handles the players' stakes: it reports places, and
// the room pays.
//
// A race is in the shared state of its room, which players see and cannot write. What a referee
// has in memory is a copy, so another one can go on at any time, or beside it: each roll is a
// compare-and-set.
package referee

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	parlor "github.com/parlor-games/parlor/sdk/go"
)

// The rules of a race.
const (
	FinishLine = 20                     // steps
	Duration   = 40 * time.Second       // then the leader wins, or the pot is split
	Cooldown   = 250 * time.Millisecond // of a player between two moves: a script is no faster than a person
	maxRoll    = 3                      // steps in one move, from 1

	// GameName marks the races among the rooms of the game, as metadata {"game":"race"}.
	GameName = "race"
)

// cooldownTolerance is for clocks of browsers, whose timers may fire early.
const cooldownTolerance = 20 * time.Millisecond

// Rules is the value "race" of the shared state.
type Rules struct {
	FinishLine int       `json:"finishLine"` // steps
	EndsAt     time.Time `json:"endsAt"`
	CooldownMS int64     `json:"cooldownMs"` // between two moves of a player
}

// Runner is the value "runner.<user id>" of the shared state: how far a player is.
type Runner struct {
	Steps  int   `json:"steps"`
	Rolled int   `json:"rolled"` // the last roll
	Moves  int   `json:"moves"`  // how many there were
	AtMS   int64 `json:"atMs"`   // of the last one, Unix time
}

const (
	rulesName    = "race"
	runnerPrefix = "runner."
)

// Options are what the referee needs to know of its game.
type Options struct {
	NodeURL   string // of a node, or of the balancer of several
	ServerKey string // of the game
	Log       *slog.Logger
}

// referee runs the races of one game.
type referee struct {
	server *parlor.Server
	log    *slog.Logger
	clocks sync.WaitGroup // of races

	mu    sync.Mutex
	races map[string]*race // that have started, by room id
}

// race is a copy of the shared state of a room.
type race struct {
	roomID  string
	players []int64 // user ids, by seat; those who gave up are not among them
	over    chan struct{}

	mu      sync.Mutex
	version int64 // of the shared state
	rules   Rules // zero before the race has begun
	runners map[int64]Runner
}

// Run runs the races until ctx ends.
func Run(ctx context.Context, o Options) error {
	server, err := parlor.NewServer(parlor.Options{
		URL: o.NodeURL, Key: o.ServerKey, Log: o.Log,
		OnlyWatchedCalls: true, // those of other rooms are for the server that somebody writes beside the demo
	})
	if err != nil {
		return err
	}
	r := &referee{server: server, log: o.Log, races: map[string]*race{}}
	server.On("room.created", func(ctx context.Context, e parlor.Event) error {
		room, err := server.Room(ctx, e.RoomID)
		return r.watch(ctx, room, err)
	})
	server.On("room.started", func(ctx context.Context, e parlor.Event) error { return r.begin(ctx, e.RoomID) })
	server.On("room.finished", r.end)
	server.On("room.cancelled", r.end)
	server.OnRoom(func(ctx context.Context, room parlor.Room) error {
		if err := r.watch(ctx, room, nil); err != nil || room.Status != parlor.Started {
			return err
		}
		return r.begin(ctx, room.RoomID)
	})
	server.OnCall("race.roll", r.roll) // a name that no other server of the game has by chance
	err = server.Run(ctx)
	r.stopClocks()
	return err
}

// begin writes the rules of a race into its room, and starts the clock of the race.
func (r *referee) begin(ctx context.Context, roomID string) error {
	room, err := r.server.Room(ctx, roomID)
	if err != nil || room.Status != parlor.Started || room.StartedAt == nil || !isRace(room) {
		return err
	}
	g, err := newRace(room)
	if err != nil {
		return err
	}
	if g.rules.EndsAt.IsZero() {
		rules := Rules{FinishLine, room.StartedAt.Add(Duration), Cooldown.Milliseconds()}
		g.version, err = r.server.SetState(ctx, roomID, parlor.StateChange{
			Version: g.version, Patch: map[string]any{rulesName: rules},
		})
		if err != nil {
			return err // repeated: of another referee the rules are there then
		}
		g.rules = rules
	}
	r.mu.Lock()
	isNew := r.races[roomID] == nil
	if isNew {
		r.races[roomID] = g
	}
	r.mu.Unlock()
	if isNew {
		r.clocks.Go(func() { r.watchClock(ctx, g) })
	}
	return nil
}

// watch takes the calls of a room that was read, if it is a race.
func (r *referee) watch(ctx context.Context, room parlor.Room, err error) error {
	if err == nil && isRace(room) {
		err = r.server.WatchRoom(ctx, room.RoomID)
	}
	if isRefusal(err) {
		return nil // it is gone
	}
	return err
}

func isRace(room parlor.Room) bool {
	var metadata struct {
		Game any `json:"game"`
	}
	return wire.Unmarshal(room.Metadata, &metadata) == nil && metadata.Game == GameName
}

// newRace returns the race in a room.
func newRace(room parlor.Room) (*race, error) {
	g := &race{roomID: room.RoomID, over: make(chan struct{}), runners: map[int64]Runner{}}
	for _, p := range room.Participants {
		g.players = append(g.players, p.ID)
	}
	return g, g.read(room)
}

// read replaces the copy by the shared state of the room.
func (g *race) read(room parlor.Room) error {
	g.version = room.StateVersion()
	errs := []error{room.DecodeState(rulesName, &g.rules)}
	for _, user := range g.players {
		var runner Runner
		errs = append(errs, room.DecodeState(runnerName(user), &runner))
		g.runners[user] = runner
	}
	return errors.Join(errs...)
}

func runnerName(user int64) string { return runnerPrefix + strconv.FormatInt(user, 10) }

// maxConflicts is how often a roll is made again because another referee was first.
const maxConflicts = 5

// roll moves the player who calls.
func (r *referee) roll(ctx context.Context, c parlor.Call) (any, error) {
	r.mu.Lock()
	g := r.races[c.RoomID]
	r.mu.Unlock()
	if g == nil { // its start is not heard yet, or another referee began it
		if err := r.begin(ctx, c.RoomID); err != nil {
			return nil, err
		}
		r.mu.Lock()
		g = r.races[c.RoomID]
		r.mu.Unlock()
	}
	if g == nil {
		return nil, &parlor.Error{Code: "no_race", Detail: "This race has not started."}
	}
	runner, err := r.rollFor(ctx, g, c.From)
	if err == nil && runner.Steps >= FinishLine {
		// The page waits for room.finished, not for this answer; the clock repeats a failure.
		if err := r.finish(ctx, g.roomID); err != nil {
			r.log.Warn("the result could not be reported", "room", g.roomID, "cause", err)
		}
	}
	return runner, err
}

func (r *referee) rollFor(ctx context.Context, g *race, user int64) (Runner, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for attempt := 1; ; attempt++ {
		next, rejected := g.next(user, time.Now(), 1+rand.IntN(maxRoll))
		if rejected != nil {
			return Runner{}, rejected
		}
		version, err := r.server.SetState(ctx, g.roomID, parlor.StateChange{
			Version: g.version, Patch: map[string]any{runnerName(user): next},
		})
		if err == nil {
			g.version, g.runners[user] = version, next
			return next, nil
		}
		problem := (*parlor.Problem)(nil)
		if !errors.As(err, &problem) || problem.Code != "version_conflict" || attempt == maxConflicts {
			return Runner{}, err
		}
		now := parlor.Room{Shared: &parlor.SharedState{}}
		if err := errors.Join(wire.Unmarshal(problem.Current, now.Shared), g.read(now)); err != nil {
			return Runner{}, err
		}
	}
}

// next returns where a player is after a roll, or why the roll does not count.
func (g *race) next(user int64, now time.Time, rolled int) (next Runner, rejected error) {
	last := g.runners[user]
	switch {
	case !g.has(user):
		return next, &parlor.Error{Code: "not_in_race", Detail: "You do not play in this race."}
	case g.isWon() || now.After(g.rules.EndsAt):
		return next, &parlor.Error{Code: "race_over", Detail: "This race is over."}
	case now.Sub(time.UnixMilli(last.AtMS)) < Cooldown-cooldownTolerance:
		return next, &parlor.Error{Code: "too_fast", Detail: "One move at a time."}
	}
	return Runner{min(last.Steps+rolled, FinishLine), rolled, last.Moves + 1, now.UnixMilli()}, nil
}

func (g *race) has(user int64) bool {
	for _, u := range g.players {
		if u == user {
			return true
		}
	}
	return false
}

func (g *race) isWon() bool {
	for _, runner := range g.runners {
		if runner.Steps >= FinishLine {
			return true
		}
	}
	return false
}

// watchClock ends a race when its time is over, or at once when it is won already.
func (r *referee) watchClock(ctx context.Context, g *race) {
	g.mu.Lock()
	left := time.Until(g.rules.EndsAt)
	if g.isWon() {
		left = 0
	}
	g.mu.Unlock()
	for {
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-g.over:
			timer.Stop()
			return
		case <-timer.C:
		}
		if err := r.finish(ctx, g.roomID); err == nil || isRefusal(err) {
			return
		} else if ctx.Err() == nil {
			r.log.Warn("the result could not be reported", "room", g.roomID, "cause", err)
		}
		left = time.Second
	}
}

// isRefusal reports whether the service refused, and will refuse again.
func isRefusal(err error) bool {
	problem := (*parlor.Problem)(nil)
	return errors.As(err, &problem) && !problem.Retryable
}

// finish reports the result of a race, as its room has it by now. The key is made from the room, so
// that a report that is sent twice, or by two referees, counts once.
func (r *referee) finish(ctx context.Context, roomID string) error {
	room, err := r.server.Room(ctx, roomID)
	if err != nil || room.Status != parlor.Started {
		return err
	}
	g, err := newRace(room)
	if err != nil {
		return err
	}
	_, err = r.server.Finish(parlor.WithKey(ctx, "race-"+roomID), roomID, g.results())
	return err
}

// results returns the places by steps; equal steps are a tie.
func (g *race) results() []parlor.Result {
	list := make([]parlor.Result, 0, len(g.players))
	for _, user := range g.players {
		steps := int64(g.runners[user].Steps)
		p := parlor.Result{UserID: user, Place: 1, Score: &steps}
		for _, other := range g.players {
			if int64(g.runners[other].Steps) > steps {
				p.Place++
			}
		}
		list = append(list, p)
	}
	return list
}

// end forgets a race whose room has ended.
func (r *referee) end(_ context.Context, e parlor.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(e.RoomID)
	return nil
}

// forget stops the clock of a race. r.mu must be held.
func (r *referee) forget(roomID string) {
	if g := r.races[roomID]; g != nil {
		close(g.over)
		delete(r.races, roomID)
	}
}

func (r *referee) stopClocks() {
	r.mu.Lock()
	for roomID := range r.races {
		r.forget(roomID)
	}
	r.mu.Unlock()
	r.clocks.Wait()
}
