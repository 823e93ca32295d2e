// Package referee is the game server of the demo at /play: it rolls the dice of a race and reports
// the winner.
//
// It is an example of a game's own server. It has a server key and calls the API over HTTP, like
// every client; it knows no domain and no store. The page asks it for each move, because a page
// that rolled its own dice could always roll the best. It never handles the players' stakes: it
// reports places, and the room pays. Races are in its memory, so one referee may run for a game.
package referee

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
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

// Options are what the referee needs to know of its game.
type Options struct {
	NodeURL      string // of a node, or of the balancer of several
	ServerKey    string // of the game
	GameID       int64
	EntryTokenID int64  // the token of the entry fee
	Entry        string // the entry fee, a decimal
}

// Referee runs the races of one game. It is an http.Handler for the page.
type Referee struct {
	log     *slog.Logger
	client  http.Client
	mux     *http.ServeMux
	options Options       // not to be read before started is closed
	started chan struct{} // closed when options are set

	mu      sync.Mutex
	races   map[string]*race // by room id
	players map[string]int64 // the player of an access token, so that a move is not two requests
}

// race is the referee's memory of a room. A new referee begins anew: nobody loses money,
// since the room has the stakes.
type race struct {
	endsAt time.Time
	order  []int64             // user ids, by seat
	lastAt map[int64]time.Time // of each player's last move
	moves  []Move
	over   bool // the result was reported, or the room ended without it
}

// Move is one roll. Moves of a race are numbered from 1 without a gap, so that a page notices what
// it missed.
type Move struct {
	Number int   `json:"n"`
	UserID int64 `json:"userId"`
	Rolled int   `json:"rolled"` // steps
	Steps  int   `json:"steps"`  // of this player, all moves together
}

// raceState is the page's update: the moves after the one that it has.
type raceState struct {
	Moves  []Move    `json:"moves"`
	EndsAt time.Time `json:"endsAt"`
}

// gameState has the values that the page needs before it plays.
type gameState struct {
	GameID       int64  `json:"gameId"`
	EntryTokenID int64  `json:"entryTokenId"`
	Entry        string `json:"entry"`
	FinishLine   int    `json:"finishLine"`
	Seconds      int    `json:"seconds"`
	CooldownMS   int64  `json:"cooldownMs"`
}

// New returns a referee that serves at prefix, such as "/referee". It refuses requests until Run
// has set its game.
func New(prefix string, log *slog.Logger) *Referee {
	r := &Referee{
		log: log, client: http.Client{Timeout: requestTimeout, Transport: &http.Transport{}}, mux: http.NewServeMux(),
		started: make(chan struct{}), races: map[string]*race{}, players: map[string]int64{},
	}
	r.mux.HandleFunc("GET "+prefix, r.serveGame)
	r.mux.HandleFunc("GET "+prefix+"/races/{room}", r.serveRace)
	r.mux.HandleFunc("POST "+prefix+"/races/{room}/moves", r.serveMove)
	return r
}

const (
	requestTimeout = 5 * time.Second
	pollInterval   = 300 * time.Millisecond // how late a race may be noticed, or ended by the clock
	maxPlayers     = 1000                   // remembered access tokens
	maxBodyBytes   = 1 << 20
)

// Run begins the race of each room that has started and ends races whose time has passed, until ctx
// ends. It must be called once.
func (r *Referee) Run(ctx context.Context, o Options) error {
	r.options = o
	close(r.started)
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	defer r.client.CloseIdleConnections()
	for {
		if err := r.poll(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("the referee could not look after the races", "cause", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// ServeHTTP serves the page.
func (r *Referee) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	select {
	case <-r.started:
		r.mux.ServeHTTP(w, req)
	default:
		refuse(w, http.StatusServiceUnavailable, "the referee is not here yet")
	}
}

func (r *Referee) serveGame(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, gameState{
		r.options.GameID, r.options.EntryTokenID, r.options.Entry, FinishLine, int(Duration.Seconds()),
		Cooldown.Milliseconds(),
	})
}

// serveRace returns the moves after the number in the query, for a page that missed some.
func (r *Referee) serveRace(w http.ResponseWriter, req *http.Request) {
	var after int
	if _, err := fmt.Sscanf(cmp.Or(req.URL.Query().Get("after"), "0"), "%d", &after); err != nil || after < 0 {
		refuse(w, http.StatusBadRequest, "after is the number of a move")
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.races[req.PathValue("room")]
	if g == nil {
		refuse(w, http.StatusNotFound, "there is no such race")
		return
	}
	respond(w, http.StatusOK, raceState{g.moves[min(after, len(g.moves)):], g.endsAt})
}

// serveMove rolls for the player whose access token the request has.
func (r *Referee) serveMove(w http.ResponseWriter, req *http.Request) {
	user, err := r.whoIs(req.Context(), req.Header.Get("Authorization"))
	if err != nil {
		refuse(w, http.StatusUnauthorized, "who are you? "+err.Error())
		return
	}
	room := req.PathValue("room")
	if !r.knows(room) { // it may have started since the last poll
		if err := r.poll(req.Context()); err != nil {
			refuse(w, http.StatusBadGateway, "the rooms cannot be read")
			return
		}
	}
	move, status, reason := r.roll(room, user, time.Now())
	if reason != "" {
		refuse(w, status, reason)
		return
	}
	if move.Steps >= FinishLine {
		// The page waits for room.finished, not for this response; the next poll repeats a failure.
		if err := r.finish(req.Context(), room); err != nil {
			r.log.Warn("the result could not be reported", "room", room, "cause", err)
		}
	}
	respond(w, http.StatusOK, move)
}

func (r *Referee) knows(room string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.races[room] != nil
}

// roll makes a move, or returns a status and the reason why not.
func (r *Referee) roll(room string, user int64, now time.Time) (m Move, status int, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.races[room]
	switch {
	case g == nil:
		return m, http.StatusNotFound, "this race has not started"
	case !g.has(user):
		return m, http.StatusForbidden, "you do not play in this race"
	case g.isWon() || now.After(g.endsAt):
		return m, http.StatusConflict, "this race is over"
	case now.Sub(g.lastAt[user]) < Cooldown-cooldownTolerance:
		return m, http.StatusTooManyRequests, "one move at a time"
	}
	g.lastAt[user] = now
	rolled := 1 + rand.IntN(maxRoll)
	m = Move{Number: len(g.moves) + 1, UserID: user, Rolled: rolled, Steps: min(g.steps(user)+rolled, FinishLine)}
	g.moves = append(g.moves, m)
	return m, 0, ""
}

// cooldownTolerance is for clocks of browsers, whose timers may fire early.
const cooldownTolerance = 20 * time.Millisecond

func (g *race) has(user int64) bool {
	for _, u := range g.order {
		if u == user {
			return true
		}
	}
	return false
}

func (g *race) steps(user int64) int {
	for i := len(g.moves) - 1; i >= 0; i-- {
		if g.moves[i].UserID == user {
			return g.moves[i].Steps
		}
	}
	return 0
}

func (g *race) isWon() bool { return len(g.moves) > 0 && g.moves[len(g.moves)-1].Steps >= FinishLine }

// room is a room as far as the referee needs it.
type room struct {
	RoomID    string     `json:"roomId"`
	StartedAt *time.Time `json:"startedAt"`
	Metadata  struct {
		Game wire.RawJSON `json:"game"`
	} `json:"metadata"`
	Participants []struct {
		ID int64 `json:"id"`
	} `json:"participants"`
}

// poll looks for races that have started, and ends those that are won or whose time is over.
func (r *Referee) poll(ctx context.Context) error {
	listed := map[string]bool{}
	for cursor := ""; ; {
		var page struct {
			Items      []room  `json:"items"`
			NextCursor *string `json:"nextCursor"`
		}
		path := "/api/v1/admin/rooms?status=STARTED&limit=100&cursor=" + url.QueryEscape(cursor)
		if err := r.call(ctx, http.MethodGet, path, "", nil, &page); err != nil {
			return err
		}
		for _, room := range page.Items {
			listed[room.RoomID] = true
			if string(room.Metadata.Game) == `"`+GameName+`"` {
				r.begin(room)
			}
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	var errs []error
	for _, id := range r.due(time.Now(), listed) {
		errs = append(errs, r.finish(ctx, id))
	}
	return errors.Join(errs...)
}

// begin remembers a race that has started.
func (r *Referee) begin(room room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.races[room.RoomID] != nil || room.StartedAt == nil {
		return
	}
	g := &race{endsAt: room.StartedAt.Add(Duration), lastAt: map[int64]time.Time{}}
	for _, p := range room.Participants {
		g.order = append(g.order, p.ID)
	}
	r.races[room.RoomID] = g
}

// forgetAfter is for how long the moves of a race that is over can be read.
const forgetAfter = time.Minute

// due returns the races that must end now, and forgets those that ended a while ago. listed are the
// rooms that are started.
func (r *Referee) due(now time.Time, listed map[string]bool) (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, g := range r.races {
		switch {
		case now.After(g.endsAt.Add(forgetAfter)) && !listed[id]:
			delete(r.races, id)
		case listed[id] && !g.over && (g.isWon() || now.After(g.endsAt)):
			ids = append(ids, id)
		}
	}
	return ids
}

type placement struct {
	UserID int64 `json:"userId"`
	Place  int   `json:"place"`
	Score  int   `json:"score"`
}

// results returns the places by steps; equal steps are a tie.
func (g *race) results() []placement {
	list := make([]placement, 0, len(g.order))
	for _, user := range g.order {
		p := placement{UserID: user, Place: 1, Score: g.steps(user)}
		for _, other := range g.order {
			if g.steps(other) > p.Score {
				p.Place++
			}
		}
		list = append(list, p)
	}
	return list
}

// finish reports the result of a race. The key is made from the room, so a report that is sent
// twice counts once.
func (r *Referee) finish(ctx context.Context, roomID string) error {
	r.mu.Lock()
	g := r.races[roomID]
	body := map[string]any{"roomId": roomID, "results": g.results()}
	r.mu.Unlock()
	err := r.call(ctx, http.MethodPost, "/api/v1/game-session/finish", "race-"+roomID, body, nil)
	var rejection *rejectionError
	if err != nil && (!errors.As(err, &rejection) || rejection.retryable) {
		return err
	}
	r.mu.Lock()
	g.over = true
	r.mu.Unlock()
	return err
}

// whoIs returns the player of an Authorization header, as the API says.
func (r *Referee) whoIs(ctx context.Context, authorization string) (int64, error) {
	if !strings.HasPrefix(authorization, "Bearer ") {
		return 0, errors.New("send your access token")
	}
	r.mu.Lock()
	user, known := r.players[authorization]
	r.mu.Unlock()
	if known {
		return user, nil
	}
	var me struct {
		ID int64 `json:"id"`
	}
	if err := r.callAs(ctx, authorization, http.MethodGet, "/api/v1/me", "", nil, &me); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.players) >= maxPlayers {
		clear(r.players)
	}
	r.players[authorization] = me.ID
	return me.ID, nil
}

// rejectionError is a problem that the API answered with.
type rejectionError struct {
	code, detail string
	retryable    bool
}

func (e *rejectionError) Error() string { return e.code + ": " + e.detail }

func (r *Referee) call(ctx context.Context, method, path, key string, in, out any) error {
	return r.callAs(ctx, "Bearer "+r.options.ServerKey, method, path, key, in, out)
}

// callAs sends one request with an Authorization header.
func (r *Referee) callAs(ctx context.Context, authorization, method, path, key string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = wire.Marshal(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, r.options.NodeURL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", authorization)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBodyBytes))
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		var p struct {
			Code      string `json:"code"`
			Detail    string `json:"detail"`
			Retryable bool   `json:"retryable"`
		}
		if wire.Unmarshal(text, &p) != nil || p.Code == "" {
			return fmt.Errorf("%s %s: %s", method, path, resp.Status)
		}
		return &rejectionError{p.Code, p.Detail, p.Retryable}
	}
	if out == nil {
		return nil
	}
	return wire.Unmarshal(text, out)
}

func respond(w http.ResponseWriter, status int, v any) {
	text, err := wire.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func refuse(w http.ResponseWriter, status int, reason string) {
	respond(w, status, map[string]string{"detail": reason})
}
