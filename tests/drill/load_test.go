//go:build linux

package drill

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/base/wire/wiretest"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

// load is players, a game server and an operator who do all that a game with money does, through
// the balancer, until they are stopped. A call without a clear response is repeated with its key
// until it has one.
type load struct {
	in      *installation
	ctx     context.Context // ends with the load
	stop    context.CancelFunc
	workers sync.WaitGroup

	credits atomic.Int64

	mu    sync.Mutex
	r     result // what was counted since the change
	since time.Time
	acked []acknowledged
	last  time.Time      // of the end of the last attempt about money that failed
	lines []string       // what failed or was cut, and when; the first ones
	texts map[string]int // how often each of them
}

// acknowledged is a call that got a success.
type acknowledged struct {
	kind, path, bearer, key string
	body                    any
	status                  int
	user                    int64
	ref                     string // a room, a purchase, a reason or a version
	at                      time.Time
}

// workerCount returns how many workers play; `make test` makes do with a few.
func workerCount() int { return pick(4, 12) }

const (
	pace           = 20 * time.Millisecond  // between two calls of a worker, within what two cores do
	roomPace       = 250 * time.Millisecond // between two changes of a room that is followed
	attemptTimeout = 20 * time.Second
	retryPause     = 100 * time.Millisecond
	maxLines       = 30
)

// newClient returns an HTTP client from an address of its own, since the balancer limits the
// connections of each. It repeats nothing; see call.
func newClient(source string, protocol string) *http.Client {
	transport := &http.Transport{
		DialContext:         dialFrom(source),
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: 16,
		ForceAttemptHTTP2:   protocol == "h2",
	}
	if protocol != "h2" {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return &http.Client{Transport: transport, Timeout: attemptTimeout}
}

func dialFrom(source string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: 5 * time.Second}
	return dialer.DialContext
}

// post sends a request once. That it has a body which cannot be read again keeps the HTTP client
// from repeating it.
func post(ctx context.Context, client *http.Client, url, bearer, key string, body any) (nodetest.Response, error) {
	encoded, err := wire.Marshal(body)
	if err != nil {
		return nodetest.Response{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(encoded))
	if err != nil {
		return nodetest.Response{}, err
	}
	request.GetBody = nil
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := client.Do(request)
	if err != nil {
		return nodetest.Response{}, err
	}
	defer func() { _ = response.Body.Close() }()
	r := nodetest.Response{Status: response.StatusCode, Header: response.Header}
	if r.Raw, err = io.ReadAll(response.Body); err != nil {
		return nodetest.Response{}, err
	}
	if wiretest.Unmarshal(r.Raw, &r.Body) != nil {
		r.Body = nil
	}
	return r, nil
}

func newLoad(in *installation, ctx context.Context) *load {
	return &load{in: in, ctx: ctx, since: time.Now(), texts: map[string]int{}}
}

// startLoad starts the workers, and waits until each of them has played a round.
func (in *installation) startLoad() {
	in.t.Helper()
	l := newLoad(in, nil)
	l.ctx, l.stop = context.WithCancel(context.Background())
	in.load = l
	in.t.Cleanup(l.end)
	rounds := make([]atomic.Int64, workerCount())
	for i := range workerCount() {
		w := &worker{load: l, name: fmt.Sprint("w", i), client: newClient(fmt.Sprintf("127.0.1.%d", i+1), protocolOf(i))}
		l.workers.Go(func() { w.run(&rounds[i]) })
	}
	for i, room := range in.crowd.rooms {
		client := newClient(fmt.Sprintf("127.0.2.%d", i+1), protocolOf(i))
		w := &worker{load: l, name: fmt.Sprint("r", i), client: client}
		l.workers.Go(func() { w.changeRoom(room) })
	}
	in.wait("every worker has played a round", func() bool {
		for i := range rounds {
			if rounds[i].Load() == 0 {
				return false
			}
		}
		return true
	})
}

func protocolOf(i int) string { return []string{"h2", "http/1.1"}[i%2] }

// begin counts anew from now on: the change is about to be made.
func (l *load) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.r, l.lines, l.since, l.last = result{}, nil, time.Now(), time.Time{}
	clear(l.texts)
}

// end stops the workers.
func (l *load) end() {
	l.stop()
	l.workers.Wait()
}

// count counts a request whose first attempt took from began until now.
func (l *load) count(what string, began time.Time, err error) {
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.r.requests++
	l.r.slowest = max(l.r.slowest, took)
	if err != nil {
		l.r.failed++
		l.note("%s failed: %v", what, err)
	}
}

// note adds a line about what went wrong. load.mu must be held.
func (l *load) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.texts[text]++
	if l.texts[text] == 1 && len(l.lines) < maxLines {
		l.lines = append(l.lines, fmt.Sprintf("%7.3f s %s", time.Since(l.since).Seconds(), text))
	}
}

// answered returns how many calls were acknowledged, and since when none has failed.
func (l *load) answered() (count int, quiet time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked), time.Since(l.last)
}

// worker makes one call after the other.
type worker struct {
	load   *load
	name   string
	client *http.Client
	number int
	saves  *saver
	bob    member // who stays; the other player of each round is a new one
}

type member struct {
	id    int64
	token string
}

// errGaveUp is the result of a call that is over without a success: the load has ended, or what the
// call is about is lost.
var errGaveUp = errors.New("the call has no success")

// call makes a request until it has a final response. ref returns what the response names.
func (w *worker) call(
	kind, path, bearer string, status int, body any, user int64, ref func(nodetest.Response) string,
) (nodetest.Response, error) {
	l := w.load
	w.number++
	key := fmt.Sprintf("%s-%s-%d", w.name, kind, w.number)
	url := l.in.front.URL + path
	var r nodetest.Response
	isFirst := true
	err := redistest.Poll(time.Hour, func() error {
		began := time.Now()
		var err error
		// What is under way is not given up when the load ends.
		r, err = post(context.WithoutCancel(l.ctx), w.client, url, bearer, key, body)
		if err == nil && r.Status != status {
			err = fmt.Errorf("%d %s: %v", r.Status, r.Code(), r.Body["detail"])
		}
		if isFirst {
			l.count(kind, began, err)
		}
		isFirst = false
		if err != nil {
			if l.ctx.Err() != nil || r.Status >= 400 && r.Status < 500 {
				r = nodetest.Response{}
				return nil
			}
			l.mu.Lock()
			l.last = time.Now()
			l.mu.Unlock()
			w.pause(retryPause)
		}
		return err
	})
	if err != nil || r.Status == 0 {
		return r, errGaveUp
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.r.acknowledged++
	l.acked = append(l.acked, acknowledged{kind, path, bearer, key, body, status, user, ref(r), time.Now()})
	return r, nil
}

// pause waits, at most until the load ends.
func (w *worker) pause(d time.Duration) {
	ctx, cancel := context.WithTimeout(w.load.ctx, d)
	defer cancel()
	<-ctx.Done()
}

func numberOf(v any) int64 {
	n, ok := v.(wiretest.Number)
	if !ok {
		return 0
	}
	value, _ := n.Int64()
	return value
}

func userOf(r nodetest.Response) member {
	user, _ := r.Body["user"].(map[string]any)
	token, _ := r.Body["accessToken"].(string)
	return member{numberOf(user["id"]), token}
}

func noRef(nodetest.Response) string { return "" }

// signIn signs a new player in, by turns as a guest and by the game's server.
func (w *worker) signIn(n int) (member, error) {
	name := fmt.Sprintf("%s-%d", w.name, n)
	path, bearer, body := "/api/v1/auth/guest", "", map[string]any{"gameId": w.load.in.game, "username": name}
	if n%2 == 1 {
		path, bearer = "/api/v1/auth/exchange", w.load.in.serverKey
		body = map[string]any{"externalId": name, "username": name}
	}
	r, err := w.call("sign-in", path, bearer, 201, body, 0, func(r nodetest.Response) string {
		return strconv.FormatInt(userOf(r).id, 10)
	})
	return userOf(r), err
}

// run plays rounds until the load ends.
func (w *worker) run(rounds *atomic.Int64) {
	w.saves = &saver{load: w.load, source: fmt.Sprintf("127.0.3.%s", w.name[1:])}
	defer w.saves.close()
	for n := 0; w.load.ctx.Err() == nil; n++ {
		if w.round(n) == nil {
			rounds.Add(1)
		}
	}
}

// round plays a paid room with a new player, buys, saves, and credits somebody.
func (w *worker) round(n int) error {
	in, l := w.load.in, w.load
	const session = "/api/v1/game-session/"
	if w.bob.token == "" {
		bob, err := w.signIn(-1)
		if err != nil {
			return err
		}
		w.bob = bob
		w.saves.player = bob
	}
	ann, err := w.signIn(n)
	if err != nil {
		return err
	}
	w.pause(pace)
	opened, err := w.call("create", session+"create", ann.token, 201, map[string]any{
		"entryTokenId": in.tokenID, "roomEntry": 2.5, "maxPlayers": 2, "rakeBps": 500,
	}, ann.id, func(r nodetest.Response) string { return r.Body["roomId"].(string) })
	if err != nil {
		return err
	}
	id := opened.Body["roomId"].(string)
	room := map[string]any{"roomId": id}
	isRoom := func(nodetest.Response) string { return id }
	buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", in.coin)
	target := w.bob.id
	if l.in.crowd != nil {
		target = in.crowd.target(int(l.credits.Add(1)))
	}
	reason := fmt.Sprintf("gift-%s-%d", w.name, n)
	for _, step := range []struct {
		kind, path, bearer string
		status             int
		body               any
		user               int64
		ref                func(nodetest.Response) string
	}{
		{"join", session + "join", w.bob.token, 200, room, w.bob.id, isRoom},
		{"start", session + "start", ann.token, 200, room, ann.id, isRoom},
		{"finish", session + "finish", in.serverKey, 200, map[string]any{"roomId": id, "results": []map[string]any{
			{"userId": w.bob.id, "place": 1}, {"userId": ann.id, "place": 2},
		}}, 0, isRoom},
		{
			"purchase", buy, w.bob.token, 201,
			map[string]any{"quantity": 1},
			w.bob.id,
			func(r nodetest.Response) string { return fmt.Sprint(r.Body["purchaseId"]) },
		},
		{
			"credit", fmt.Sprintf("/api/v1/admin/users/%d/credit", target), in.operator(), 200,
			map[string]any{"tokenId": "GOLD", "amount": 0.5, "reason": reason},
			target,
			func(nodetest.Response) string { return reason },
		},
	} {
		w.pause(pace)
		if _, err := w.call(step.kind, step.path, step.bearer, step.status, step.body, step.user, step.ref); err != nil {
			return err
		}
	}
	w.pause(pace)
	return w.saves.save()
}

// changeRoom changes a room that is followed until the load ends.
func (w *worker) changeRoom(room *crowdRoom) {
	for n := 0; w.load.ctx.Err() == nil; n++ {
		_ = w.setReady(room, n%2 == 0)
		w.pause(roomPace)
	}
}

func (w *worker) setReady(room *crowdRoom, ready bool) error {
	_, err := w.call("ready", "/api/v1/game-session/ready", room.host.token, 200,
		map[string]any{"roomId": room.id, "ready": ready}, room.host.id, noRef)
	return err
}

// replayed are the kinds of calls that leave a receipt. A sign-in makes a new session each time.
var replayed = []string{"create", "join", "start", "finish", "purchase", "credit"}

// replay sends acknowledged calls again, with their keys, and returns those that are no replays.
func (l *load) replay(t *testing.T) (gone []acknowledged) {
	var mu sync.Mutex
	var clients sync.WaitGroup
	next := make(chan acknowledged)
	for i := range 8 {
		client := newClient(fmt.Sprintf("127.0.4.%d", i+1), "http/1.1")
		clients.Go(func() {
			for call := range next {
				bearer := call.bearer
				r, err := post(context.Background(), client, l.in.front.URL+call.path, bearer, call.key, call.body)
				if err != nil || r.Status != call.status || r.Header.Get("Idempotent-Replayed") != "true" {
					mu.Lock()
					gone = append(gone, call)
					if len(gone) < 10 {
						t.Logf("%s %s again: %v %v %s", call.kind, call.key, err, r, r.Header.Get("Idempotent-Replayed"))
					}
					mu.Unlock()
				}
			}
		})
	}
	for _, call := range l.acked {
		if slices.Contains(replayed, call.kind) {
			next <- call
		}
	}
	close(next)
	clients.Wait()
	return gone
}
