//go:build linux

package drill

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/balancertest"
	"github.com/parlor-games/parlor/tests/books"
	"github.com/parlor-games/parlor/tests/installtest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// roots are the authorities that clients trust. A certificate that a balancer gets later has
// another one.
var roots = x509.NewCertPool()

// hasCertificate reports whether the balancer has a certificate.
func (in *installation) hasCertificate(c redistest.Certificates) bool {
	conn, err := tls.Dial("tcp", in.front.Addr, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	text, err := os.ReadFile(c.Cert)
	block, _ := pem.Decode(text)
	return err == nil && block != nil && bytes.Equal(conn.ConnectionState().PeerCertificates[0].Raw, block.Bytes)
}

func trust(t testing.TB, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil || !roots.AppendCertsFromPEM(text) {
		t.Fatalf("trust %s: %v", file, err)
	}
}

// installation is nodes behind the balancer, on a store, with a game, and those who use it.
type installation struct {
	t     *testing.T
	drill drill
	store *installtest.Store
	fleet *balancertest.Fleet
	front *balancertest.Balancer
	db    *redisdb.DB // of a user who may read everything

	adminKey            atomic.Pointer[string]
	game, tokenID, coin int64
	serverKey           string

	nodeSettings []string // NAME=value

	crowd *crowd
	load  *load
	setup *load // counts for nobody

	changed  time.Time         // when the change began
	back     time.Time         // when the store was back, with what it has then
	lostCopy *redistest.Server // what a lost primary had
}

const nodeCount = 3

// install starts nodes on a store, a balancer, a game, and those who use it.
func install(t *testing.T, d drill, store *installtest.Store) *installation {
	t.Helper()
	in := &installation{t: t, drill: d, store: store}
	in.setup = newLoad(in, t.Context())
	operator := installtest.ReadFile(t, store.Secrets, "admin_key")
	in.adminKey.Store(&operator)
	in.setSecret(storeURLFile, store.URL)
	in.nodeSettings = append(store.NodeSettings(), "PARLOR_ACCESS_TTL=1h", "PARLOR_DURABILITY="+d.durability,
		"PARLOR_REDIS_URL=", "PARLOR_REDIS_URL_FILE="+filepath.Join(store.Secrets, storeURLFile))
	in.fleet = balancertest.NewFleet(t, store.URL, in.nodeSettings...)
	if d.program != "" {
		in.fleet.SetOlderProgram(d.program)
	}
	for range nodeCount {
		in.fleet.Add()
	}
	trust(t, balancertest.Certificates.CA)
	in.front = balancertest.Start(t, balancertest.Options{Certificate: balancertest.Certificates.Both, Fleet: in.fleet})
	db := testkit.Must(redisdb.Open(store.TestURL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	in.db = db

	front := in.front.Node
	token := front.Must(t, 201, "POST", "/api/v1/admin/tokens", operator, map[string]any{
		"tokenId": "GOLD", "tokenName": "Gold",
		"metadata": map[string]any{"assetName": "676f6c64", "policyId": "ab01", "decimals": "2"},
	})
	in.tokenID = numberOf(token.Body["id"])
	opened := front.Must(t, 201, "POST", "/api/v1/admin/games", operator, map[string]any{
		"name": "Duel", "welcomeGrant": map[string]any{"tokenId": "GOLD", "amount": 100, "for": "any"},
	})
	in.game = numberOf(opened.Body["game"].(map[string]any)["id"])
	in.serverKey = opened.Body["serverKey"].(string)
	coin := front.Must(t, 201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", in.game), operator, map[string]any{
		"name": "Coin", "tokenId": "GOLD", "price": 0.01,
	})
	in.coin = numberOf(coin.Body["id"])
	in.startCrowd()
	in.startLoad()
	return in
}

// operator returns the operator's key.
func (in *installation) operator() string { return *in.adminKey.Load() }

// counting returns the load that counts now.
func (in *installation) counting() *load {
	if in.load != nil {
		return in.load
	}
	return in.setup
}

// waitLimit is far longer than anything takes on a busy machine. Money may take moneyLimit.
const (
	waitLimit  = time.Minute
	moneyLimit = 100 * time.Second
)

func (in *installation) wait(condition string, holds func() bool) {
	in.t.Helper()
	err := redistest.Poll(waitLimit, func() error {
		if holds() {
			return nil
		}
		return errors.New("not yet")
	})
	if err != nil {
		l := in.counting()
		l.mu.Lock()
		defer l.mu.Unlock()
		in.t.Fatalf("after %v it is still not true that %s\n%s", waitLimit, condition, strings.Join(l.lines, "\n"))
	}
}

// lasts lets a fault last: what is tested is a time, not a condition.
func (in *installation) lasts(d time.Duration) {
	ctx, cancel := context.WithTimeout(in.t.Context(), d)
	defer cancel()
	<-ctx.Done()
}

// used waits until so many further calls were acknowledged.
func (in *installation) used(more int) {
	in.t.Helper()
	before, _ := in.load.answered()
	in.wait(fmt.Sprintf("%d further calls are acknowledged", more), func() bool {
		count, _ := in.load.answered()
		return count >= before+more
	})
}

// run makes a drill and returns what was noticed of it.
func (d drill) run(t *testing.T) result {
	began := time.Now()
	in := d.start(t, d)
	in.used(pick(50, 200))
	open := in.crowd.open()
	in.load.begin()
	in.changed = time.Now()
	t.Logf("%v: the installation is in use", time.Since(began))
	d.change(in)
	t.Logf("%v: the change is made", time.Since(began))
	r := in.settle()
	r.open = open
	in.load.mu.Lock()
	defer in.load.mu.Unlock()
	r.failures = in.load.lines
	return r
}

// settle waits until everything goes on as before, ends the load, and adds up.
func (in *installation) settle() result {
	t, l := in.t, in.load
	t.Helper()
	const quietFor = time.Second
	further := pick(60, 300)
	before, _ := l.answered()
	isBack := redistest.Poll(moneyLimit, func() error {
		count, quiet := l.answered()
		if count < before+further || quiet < quietFor || in.crowd.open() < len(in.crowd.followers) {
			return errors.New("something does not go on")
		}
		return nil
	}) == nil
	l.end()
	l.mu.Lock()
	r := l.r
	if !l.last.IsZero() {
		r.moneyAfter = l.last.Sub(in.changed)
	}
	l.mu.Unlock()
	if !isBack {
		r.moneyAfter = -1
		t.Errorf("%d of %d sockets are open; the nodes say %s", in.crowd.open(), len(in.crowd.followers), in.describe())
	}
	t.Logf("after %v all goes on as before", time.Since(in.changed))
	in.readLosses(&r)
	in.addUp(&r)
	if isBack {
		r.lost, r.doubled = in.finish()
	}
	return r
}

// describe returns what the first node says of itself.
func (in *installation) describe() string {
	for _, m := range in.fleet.Members() {
		r, err := m.Do(context.Background(), "GET", "/readyz", "", nil)
		return fmt.Sprint(r, err)
	}
	return "nothing"
}

// addUp compares what was acknowledged with the keys of the store.
func (in *installation) addUp(r *result) {
	in.t.Helper()
	var b books.Books
	in.wait("the store can be read", func() (ok bool) {
		var err error
		b, err = books.ReadLarge(in.t.Context(), in.db, in.game)
		return err == nil
	})
	r.delta = b.Delta()
	if err := errors.Join(b.Check(), b.CheckBought()); err != nil {
		r.books = err.Error()
		in.t.Errorf("the books:\n%v", err)
	}
	gone := in.findGone(b)
	r.gone = len(gone)
	in.compareLedgers(b, r)
	if len(gone) == 0 && r.moneyAfter >= 0 {
		gone = in.load.replay(in.t)
		r.gone = len(gone)
	}
	for i, call := range gone {
		if i < 5 {
			in.t.Logf("lost: %s %s of player %d, %s", call.kind, call.key, call.user, call.ref)
		}
	}
}

// readLosses reads what the nodes say of losses, and when the first of them said it.
func (in *installation) readLosses(r *result) {
	in.t.Helper()
	r.noticedAfter = -1
	var status history.Status
	in.wait("the history can be read", func() bool {
		var err error
		status, err = history.ReadStatus(in.t.Context(), in.db)
		return err == nil
	})
	for i, loss := range status.Losses {
		if i == 0 {
			r.noticedAfter = max(0, loss.At.Sub(in.back))
		}
		if loss.Acknowledged != nil {
			r.counted += *loss.Acknowledged
		}
		in.t.Logf("the nodes say: %d entries from %d, of which acknowledged %v; noticed %v after the store was back",
			loss.Entries(), loss.Present+1, r.counted, loss.At.Sub(in.back))
	}
	if status.Halt != nil {
		in.t.Errorf("money is stopped: %s", status.Halt.Sentence())
	}
}
