package referee

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/tests/testkit"
)

// fakeNode is a node with one started race of the players 1 and 2, with the tokens "ann" and "ben".
type fakeNode struct {
	mu       sync.Mutex
	finished []string // bodies, in order
	keys     []string // Idempotency-Keys
	refuse   string   // the code with which finish is refused, or ""
}

func (n *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case r.URL.Path == "/api/v1/me":
		id, known := map[string]string{"Bearer ann": "1", "Bearer ben": "2", "Bearer eve": "3"}[r.Header.Get("Authorization")]
		if !known {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"code":"unauthenticated","detail":"no","retryable":false}`))
			return
		}
		_, _ = w.Write([]byte(`{"id":` + id + `}`))
	case r.Header.Get("Authorization") != "Bearer key":
		w.WriteHeader(http.StatusForbidden)
	case r.URL.Path == "/api/v1/admin/rooms":
		started := wire.FormatTime(time.Now())
		_, _ = w.Write([]byte(`{"items":[` +
			`{"roomId":"r1","startedAt":"` + started + `","metadata":{"game":"race"},"participants":[{"id":1},{"id":2}]},` +
			`{"roomId":"other","startedAt":"` + started + `","metadata":{},"participants":[{"id":1},{"id":2}]}],` +
			`"nextCursor":null}`))
	case r.URL.Path == "/api/v1/game-session/finish":
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		n.finished, n.keys = append(n.finished, string(body)), append(n.keys, r.Header.Get("Idempotency-Key"))
		if n.refuse != "" {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"code":"` + n.refuse + `","detail":"no","retryable":false}`))
			return
		}
		_, _ = w.Write([]byte(`{}`))
	}
}

func newTestReferee(t *testing.T) (*Referee, *fakeNode) {
	t.Helper()
	n := &fakeNode{}
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	r := New("/referee", slog.New(slog.DiscardHandler))
	r.options = Options{NodeURL: server.URL, ServerKey: "key", GameID: 1, EntryTokenID: 1, Entry: "2.50"}
	close(r.started)
	t.Cleanup(r.client.CloseIdleConnections)
	return r, n
}

func ask(r *Referee, method, path, token string) (int, string) {
	req := httptest.NewRequest(method, path, nil)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

func TestOnlyPlayersOfARaceMoveAndNotTooFast(t *testing.T) {
	r, _ := newTestReferee(t)
	for _, c := range []struct {
		room, token string
		status      int
	}{
		{"r1", "ann", 200},
		{"r1", "ann", 429},
		{"r1", "ben", 200},
		{"r1", "eve", 403},
		{"r1", "nobody", 401},
		{"r1", "", 401},
		{"other", "ann", 404},
		{"unknown", "ann", 404},
	} {
		if status, body := ask(r, "POST", "/referee/races/"+c.room+"/moves", c.token); status != c.status {
			t.Errorf("%q moves in %s: %d %s, want %d", c.token, c.room, status, body, c.status)
		}
	}
	status, body := ask(r, "GET", "/referee/races/r1?after=1", "")
	if status != 200 || !strings.Contains(body, `"n":2,"userId":2`) || strings.Contains(body, `"n":1,`) {
		t.Errorf("the moves after the first are %d %s", status, body)
	}
	for path, want := range map[string]int{
		"/referee": 200, "/referee/races/r1?after=99": 200, "/referee/races/r1?after=-1": 400, "/referee/races/other": 404,
	} {
		if status, body := ask(r, "GET", path, ""); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestTheFirstAtTheFinishWins(t *testing.T) {
	r, n := newTestReferee(t)
	testkit.Check(t, r.poll(t.Context()))
	now := time.Now()
	for move := (Move{}); move.Steps < FinishLine; {
		now = now.Add(Cooldown)
		r.races["r1"].endsAt = now.Add(Duration)
		var reason string
		if move, _, reason = r.roll("r1", 2, now); reason != "" || move.Rolled < 1 || move.Rolled > maxRoll {
			t.Fatalf("rolled %+v: %s", move, reason)
		}
	}
	if _, status, _ := r.roll("r1", 1, now); status != http.StatusConflict {
		t.Errorf("a move after the end is %d", status)
	}
	for range 2 {
		testkit.Check(t, r.poll(t.Context()))
	}
	if len(n.finished) != 1 || n.keys[0] != "race-r1" ||
		!strings.Contains(n.finished[0], `"userId":2,"place":1,"score":20`) ||
		!strings.Contains(n.finished[0], `"userId":1,"place":2,"score":0`) {
		t.Errorf("reported %q with the keys %q", n.finished, n.keys)
	}
}

func TestTheClockEndsARaceOnceAndEqualStepsAreATie(t *testing.T) {
	r, n := newTestReferee(t)
	testkit.Check(t, r.poll(t.Context()))
	r.races["r1"].endsAt = time.Now().Add(-time.Second)
	n.refuse = "room_closed" // somebody gave up at the same time
	if err := r.poll(t.Context()); err == nil {
		t.Error("a refused report is not mentioned")
	}
	if err := r.poll(t.Context()); err != nil || len(n.finished) != 1 {
		t.Errorf("reported %d times: %v", len(n.finished), err)
	}
	if strings.Count(n.finished[0], `"place":1`) != 2 {
		t.Errorf("reported %s", n.finished[0])
	}
	r.races["r1"].endsAt = time.Now().Add(-forgetAfter - time.Second)
	if due := r.due(time.Now(), map[string]bool{}); len(due) != 0 || r.races["r1"] != nil {
		t.Errorf("an old race is remembered: %v", due)
	}
}

func TestRequestsAreRefusedBeforeTheGameIsKnown(t *testing.T) {
	r := New("/referee", slog.New(slog.DiscardHandler))
	if status, _ := ask(r, "GET", "/referee", ""); status != http.StatusServiceUnavailable {
		t.Errorf("got %d", status)
	}
}

func TestPlacesCountThoseWhoAreFurther(t *testing.T) {
	g := &race{order: []int64{5, 6, 7}, moves: []Move{
		{1, 5, 3, 3}, {2, 6, 3, 3}, {3, 7, 2, 2},
	}}
	if got := g.results(); !slices.Equal(got, []placement{{5, 1, 3}, {6, 1, 3}, {7, 3, 2}}) {
		t.Errorf("got %v", got)
	}
}
