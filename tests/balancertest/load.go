//go:build linux

package balancertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire/wiretest"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// Load is clients that send requests and hold sockets until it is stopped. Every request is sent
// once: what a client would have to repeat has failed.
type Load struct {
	front    *nodetest.Node
	stop     context.CancelFunc
	work     sync.WaitGroup
	requests atomic.Int64
	opened   atomic.Int64
	players  []loadPlayer
	tokenID  string

	mu     sync.Mutex
	report Report
}

// Report is what the clients of a load noticed.
type Report struct {
	Requests int           // and sockets that were opened
	Failed   int           // first attempts with another outcome than success
	Slowest  time.Duration // of those that succeeded
	Moved    int           // sockets that a node closed with 1012; their clients came back at once
	Cut      int           // sockets that ended in any other way
	Errors   []string      // one line for each that failed or was cut, up to 20
	Credited int64         // units that were credited and acknowledged; Balance is what the wallets have
	Balance  int64
}

func (r Report) String() string {
	return fmt.Sprintf("%d requests, %d failed, slowest %v; %d sockets moved, %d cut; %d credited, %d in wallets%s",
		r.Requests, r.Failed, r.Slowest.Round(time.Millisecond), r.Moved, r.Cut, r.Credited, r.Balance,
		strings.Join(append([]string{""}, r.Errors...), "\n  "))
}

// MustBeClean fails the test unless nothing failed, nothing was cut, and the books are right.
func (r Report) MustBeClean(t testing.TB) {
	t.Helper()
	if r.Requests == 0 || r.Failed != 0 || r.Cut != 0 || r.Credited != r.Balance {
		t.Errorf("the clients noticed: %s", r)
	}
}

type loadPlayer struct {
	id    int64
	token string
}

// maxLoadErrors bounds the lines of a report.
const maxLoadErrors = 20

// StartLoad makes a game with players through a balancer or a node, and starts workers that send
// requests and sockets that stay open. It returns when all of them are at work.
func StartLoad(t testing.TB, front *nodetest.Node, workers, sockets int) *Load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &Load{front: front, stop: stop, tokenID: "LOAD"}
	t.Cleanup(func() { stop(); l.work.Wait() })
	front.Must(t, 201, "POST", "/api/v1/admin/tokens", nodetest.AdminKey, map[string]any{
		"tokenId": l.tokenID, "tokenName": "Load",
		"metadata": map[string]any{"assetName": "6c6f6164", "policyId": "ab02", "decimals": "0"},
	})
	game := front.Must(t, 201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{"name": "Load"})
	gameID := number(t, game.Body["game"].(map[string]any)["id"])
	for i := range max(workers, 1) {
		a := front.Must(t, 201, "POST", "/api/v1/auth/guest", "",
			map[string]any{"gameId": gameID, "username": fmt.Sprint("Player ", i)})
		l.players = append(l.players, loadPlayer{
			id: number(t, a.Body["user"].(map[string]any)["id"]), token: a.Body["accessToken"].(string),
		})
	}
	for i := range workers {
		l.work.Go(func() { l.sendRequests(ctx, l.players[i]) })
	}
	for i := range sockets {
		l.work.Go(func() { l.holdSocket(ctx, l.players[i%len(l.players)]) })
	}
	redistest.Eventually(t, "the load runs", func() bool {
		return l.requests.Load() >= int64(3*workers) && l.opened.Load() >= int64(sockets)
	})
	return l
}

func number(t testing.TB, v any) int64 {
	t.Helper()
	return testkit.Must(v.(wiretest.Number).Int64())(t, "%v is not an integer", v)
}

// Requests returns how many requests have been sent so far.
func (l *Load) Requests() int { return int(l.requests.Load()) }

// Await waits until so many further requests were sent.
func (l *Load) Await(t testing.TB, requests int) {
	t.Helper()
	until := l.Requests() + requests
	redistest.Eventually(t, "further requests were sent", func() bool { return l.Requests() >= until })
}

// Stop ends the load, reads the wallets, and returns what the clients noticed.
func (l *Load) Stop(t testing.TB) Report {
	t.Helper()
	l.stop()
	l.work.Wait()
	l.report.Requests = l.Requests()
	for _, p := range l.players {
		r := l.front.Must(t, 200, "GET", "/api/v1/user-balance/token-balances", p.token, nil)
		l.report.Balance += balance(t, r)
	}
	return l.report
}

// balance returns the units of the one token of a wallet.
func balance(t testing.TB, r nodetest.Response) (units int64) {
	t.Helper()
	balances, _ := r.Body["balances"].([]any)
	for _, b := range balances {
		var n int64
		testkit.Must(fmt.Sscan(fmt.Sprint(b.(map[string]any)["amount"]), &n))(t, "%s", r)
		units += n
	}
	return units
}

// observe counts an attempt that began at a time.
func (l *Load) observe(began time.Time, what string, err error) {
	took := time.Since(began)
	l.requests.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.report.Failed++
		l.addError(fmt.Sprintf("%s %s after %v: %v", time.Now().Format("15:04:05.000"), what,
			took.Round(time.Millisecond), err))
		return
	}
	l.report.Slowest = max(l.report.Slowest, took)
}

func (l *Load) addError(line string) {
	if len(l.report.Errors) < maxLoadErrors {
		l.report.Errors = append(l.report.Errors, line)
	}
}

// sendRequests sends a read, a change of money and a change of a room in turn.
func (l *Load) sendRequests(ctx context.Context, p loadPlayer) {
	pace := time.NewTicker(10 * time.Millisecond) // within what two cores do beside the tests
	defer pace.Stop()
	send := func(n int) (string, int, nodetest.Response, error) {
		key := []string{"Idempotency-Key", fmt.Sprintf("load-%d-%d", p.id, n)}
		work := context.WithoutCancel(ctx) // one that is under way is not given up
		switch n % 3 {
		case 0:
			r, err := l.front.Do(work, "GET", "/api/v1/me", p.token, nil)
			return "GET me", 200, r, err
		case 1:
			r, err := l.front.Do(work, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", p.id), nodetest.AdminKey,
				map[string]any{"tokenId": l.tokenID, "amount": 1, "reason": "load"}, key...)
			return "POST credit", 200, r, err
		}
		r, err := l.front.Do(work, "POST", "/api/v1/game-session/create", p.token, map[string]any{"maxPlayers": 2}, key...)
		return "POST create", 201, r, err
	}
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		began := time.Now()
		what, want, r, err := send(n)
		if err == nil && r.Status != want {
			err = errors.New(r.String())
		}
		l.observe(began, what, err)
		if err == nil && n%3 == 1 {
			l.mu.Lock()
			l.report.Credited++
			l.mu.Unlock()
		}
	}
}

// holdSocket opens a socket, and another one whenever a node closes it with 1012.
func (l *Load) holdSocket(ctx context.Context, p loadPlayer) {
	for ctx.Err() == nil {
		began := time.Now()
		conn, err := l.front.Dial(context.WithoutCancel(ctx), "/api/v1/realtime", p.token)
		l.observe(began, "open a socket", err)
		if err != nil {
			waitBeforeRetry(ctx)
			continue
		}
		l.opened.Add(1)
		end := context.AfterFunc(ctx, func() { _ = conn.Close() })
		for err == nil {
			_, _, err = conn.ReadMessage()
		}
		end()
		_ = conn.Close()
		if ctx.Err() != nil {
			return
		}
		l.mu.Lock()
		if websocket.IsCloseError(err, websocket.CloseServiceRestart) {
			l.report.Moved++
		} else {
			l.report.Cut++
			l.addError(fmt.Sprintf("%s a socket ended: %v", time.Now().Format("15:04:05.000"), err))
		}
		l.mu.Unlock()
	}
}

// waitBeforeRetry waits as a client does before it tries again.
func waitBeforeRetry(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}
