package story

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// noticeLimit is within how long a node must say that its store is not what it was.
const noticeLimit = 2 * time.Second

// startNodes starts the two nodes of a fixture with a folder for their marks, which it returns.
func (f *fixture) startNodes(url string, settings ...string) (dir string) {
	f.t.Helper()
	dir = f.t.TempDir()
	for i := range f.nodes {
		f.nodes[i] = nodetest.Start(f.t, url, append([]string{
			"PARLOR_STATE_DIR=" + dir, "PARLOR_RATE_LIMITS=off",
		}, settings...)...)
	}
	return dir
}

// parlor runs a command on a store and returns what it prints.
func parlor(t *testing.T, url string, args ...string) (string, error) {
	t.Helper()
	c := exec.Command(nodetest.Binary(t), args...)
	c.Env = []string{"PARLOR_REDIS_URL=" + url, "HOME=" + t.TempDir()}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.String(), err
}

// readyCheck returns a check of /readyz.
func (f *fixture) readyCheck(n *nodetest.Node, name string) (ok bool, detail string) {
	a, err := n.Do(f.t.Context(), "GET", "/readyz", "", nil)
	if err != nil {
		return true, err.Error()
	}
	list, _ := a.Body["checks"].([]any)
	for _, c := range list {
		if c := c.(map[string]any); c["name"] == name {
			return c["ok"] == true, c["detail"].(string)
		}
	}
	return true, a.String()
}

// wantNotice waits until every node says that history is missing, and fails when that takes longer
// than noticeLimit.
func (f *fixture) wantNotice(since time.Time, text string) {
	f.t.Helper()
	for _, n := range f.nodes {
		redistest.Eventually(f.t, "a node says: "+text, func() bool {
			ok, detail := f.readyCheck(n, "history")
			return !ok && strings.Contains(detail, text)
		})
	}
	took := time.Since(since)
	f.t.Logf("both nodes said %q after %v", text, took.Round(10*time.Millisecond))
	if took > noticeLimit {
		f.t.Errorf("that is more than %v", noticeLimit)
	}
}

// shop is a game with an asset and a player who can buy it often.
type shop struct {
	installation
	buyer player
	path  string
	sold  atomic.Int64 // purchases that were acknowledged
}

func (f *fixture) openShop() *shop {
	f.t.Helper()
	s := &shop{installation: f.setUp(nil)}
	asset := f.must(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", s.game), nodetest.AdminKey, map[string]any{
		"name": "Coin", "tokenId": "GOLD", "price": "0.01",
	})
	s.path = fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", number(f.t, asset.Body["id"]))
	s.buyer = f.guest(s.game, "Ann")
	f.must(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", s.buyer.id), nodetest.AdminKey,
		map[string]any{"tokenId": "GOLD", "amount": 1_000_000, "reason": "test"}, "Idempotency-Key", "rich")
	return s
}

// buy buys a coin with the key of a number.
func (f *fixture) buy(s *shop, n int64) (nodetest.Response, error) {
	key := fmt.Sprintf("coin-%08d", n)
	a, err := f.node().Do(f.t.Context(), "POST", s.path, s.buyer.token, nil, "Idempotency-Key", key)
	if err == nil && a.Status == 201 {
		s.sold.Add(1)
	}
	return a, err
}

// lossDrill cuts the replication of a store for four seconds of purchases and promotes the replica
// by fail, which returns what the nodes then talk to.
func lossDrill(
	t *testing.T, url string, replicaLink *redistest.Proxy, fail func() *redistest.Server, settings ...string,
) {
	f := &fixture{t: t}
	f.startNodes(url, settings...)
	s := f.openShop()
	for n := range int64(20) {
		if a, err := f.buy(s, n); err != nil || a.Status != 201 {
			t.Fatalf("%v, %v", a, err)
		}
	}
	socket := f.openSocket("/api/v1/realtime", s.buyer)
	room := f.must(201, "POST", "/api/v1/game-session/create", s.buyer.token, map[string]any{
		"entryTokenId": s.tokenID, "roomEntry": 1, "maxPlayers": 2,
	}).Body["roomId"].(string)
	if reply := socket.request("room.subscribe", map[string]any{"roomId": room}); reply.Error != nil {
		t.Fatal(reply.raw)
	}
	events := socket.listen()
	redistest.WaitForReplica(t, replicaLink.Addr)
	replicaLink.Cut()
	cut, next := time.Now(), int64(20)
	for ; time.Since(cut) < 4*time.Second; next++ {
		if a, err := f.buy(s, next); err != nil || a.Status != 201 {
			t.Fatalf("%v, %v", a, err)
		}
	}
	promoted := fail()
	began := time.Now()
	f.wantNotice(began, "ledger entries of 1 games")

	left := redistest.Dial(t, promoted).LLen(t.Context(), keys.Ledger(s.game)).Val()
	entries := 3 + s.sold.Load() // the grant, the credit and the stake
	if left >= entries {
		t.Fatalf("nothing was lost: %d of %d entries are left", left, entries)
	}
	// Every purchase was acknowledged: what is lost is counted to the unit, by both nodes together.
	// Nothing else is done before, so that the time is that of the nodes.
	exact, status := fmt.Sprintf("game %d, %d acknowledged ledger entries: ", s.game, entries-left), ""
	if err := redistest.Poll(5*time.Second-time.Since(began), func() (err error) {
		if status, err = parlor(t, url, "store", "status"); err == nil {
			return errors.New("it exits 0 before the loss is accepted")
		}
		if !strings.Contains(status, exact) {
			return errors.New("it is not counted yet")
		}
		return nil
	}); err != nil {
		t.Errorf("%v: the operator does not read %q:\n%s", err, exact, status)
	}
	// Nobody's balance was changed: what is left is a prefix of the history.
	f.wantLost(s.game)
	out, err := parlor(t, url, "audit")
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 ||
		!strings.Contains(out, "\nLOST: the sums of what is left agree") {
		t.Errorf("the audit: %v\n%s", err, out)
	}
	// The socket gets what is there. It may have been resynced before the loss as well, if more was
	// bought than is kept for a socket that has just connected.
	free, _ := f.wallet(s.buyer)
	balance, snapshot := "", false
	for balance != free || !snapshot {
		switch m, ok := <-events; {
		case !ok:
			t.Fatalf("the socket was told %s, and the wallet has %s", balance, free)
		case m.Type == "user.balance" && m.Data["reason"] == "resync":
			balance = m.Data["amount"].(string)
		case m.Type == "room.snapshot" && m.RoomID == room:
			snapshot = true
		}
	}
	if a, err := f.buy(s, next+1); err != nil || a.Status != 201 {
		t.Errorf("money does not go on: %v, %v", a, err)
	}
	if out, err := parlor(t, url, "store", "accept", "--reason", "the replica was four seconds behind"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	accepted := time.Now()
	for _, n := range f.nodes {
		redistest.Eventually(t, "the operator's word is known", func() bool {
			ok, _ := f.readyCheck(n, "history")
			return ok
		})
	}
	if took := time.Since(accepted); took > noticeLimit {
		t.Errorf("the nodes went on after %v", took)
	}
	if len(settings) > 0 { // there is an archive
		for _, n := range f.nodes {
			redistest.Eventually(t, "a node says that the archive is ahead", func() bool {
				ok, detail := f.readyCheck(n, "archive")
				return !ok && strings.Contains(detail, "parlor ledger rewind")
			})
		}
	}
	trail := f.must(200, "GET", "/api/v1/admin/trail", nodetest.AdminKey, nil)
	if !strings.Contains(trail.String(), "four seconds behind") {
		t.Errorf("the trail has %s", trail)
	}
	for _, n := range f.nodes {
		log := n.Log()
		if !strings.Contains(log, "the store lost acknowledged ledger entries") && !strings.Contains(log, "went back") {
			t.Errorf("the log of a node does not tell of it:\n%s", n.Log())
		}
	}
}

// The archive has a segment that the store does not have after the failover.
func TestAStoreThatLostItsLastFourSecondsIsNoticed(t *testing.T) {
	dir := t.TempDir()
	old := testkit.Must(archive.Open("file://"+dir, archive.S3Options{}))(t)
	entries := make([]string, old.Sizes().Entries)
	for i := range entries {
		entries[i] = fmt.Sprintf("1700000000000|lost%04d|GOLD|credit|op|m:-1;w1:1", i)
	}
	testkit.Must(old.WriteSegment(t.Context(), 1, archive.Segment{}, entries))(t)
	master := redistest.StartForTest(t, "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
	link := redistest.StartProxy(t, master.Addr)
	replica := redistest.StartReplica(t, link.Addr, "--appendonly", "yes")
	front := redistest.StartProxy(t, master.Addr)
	lossDrill(t, "redis://"+front.Addr, link, func() *redistest.Server {
		testkit.Check(t, redistest.Dial(t, replica).ReplicaOf(t.Context(), "NO", "ONE").Err())
		front.Retarget(replica.Addr)
		return replica
	}, "PARLOR_ARCHIVE=file://"+dir)
}

func TestBehindSentinelAStoreThatLostItsLastFourSecondsIsNoticed(t *testing.T) {
	master := redistest.StartForTest(t, "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
	link := redistest.StartProxy(t, master.Addr)
	replica := redistest.StartReplica(t, link.Addr, "--appendonly", "yes")
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	host, port, _ := strings.Cut(master.Addr, ":")
	// After the failover-timeout a Sentinel lets a replica follow the master itself, past the link.
	settings := fmt.Sprintf("sentinel monitor parlor %s %s 1\n"+
		"sentinel down-after-milliseconds parlor 500\nsentinel failover-timeout parlor 60000\n", host, port)
	testkit.Check(t, os.WriteFile(file, []byte(settings), 0o600))
	sentinel := testkit.Must(redistest.StartSentinel(file))(t)
	t.Cleanup(sentinel.Remove)
	redistest.Eventually(t, "the sentinel knows the replica", func() bool {
		known, err := redistest.Dial(t, sentinel).Do(t.Context(), "SENTINEL", "REPLICAS", "parlor").Slice()
		return err == nil && len(known) == 1
	})
	lossDrill(t, "redis-sentinel://"+sentinel.Addr+"/parlor", link, func() *redistest.Server {
		master.Kill()
		client := redistest.Dial(t, sentinel)
		redistest.Eventually(t, "the Sentinel names the replica", func() bool { // no node can know it earlier
			named, err := client.Do(t.Context(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "parlor").StringSlice()
			return err == nil && strings.Join(named, ":") == replica.Addr
		})
		return replica
	})
}

func TestAnEmptyStoreStopsMoneyUntilAnOperatorAcceptsIt(t *testing.T) {
	for how, empty := range map[string]func(t *testing.T, store *redistest.Server, front *redistest.Proxy){
		"flushed": func(t *testing.T, store *redistest.Server, _ *redistest.Proxy) {
			testkit.Check(t, redistest.Dial(t, store).FlushAll(t.Context()).Err())
		},
		"another server": func(t *testing.T, _ *redistest.Server, front *redistest.Proxy) {
			front.Retarget(redistest.StartForTest(t, "--appendonly", "yes").Addr)
		},
	} {
		t.Run(strings.ReplaceAll(how, " ", "_"), func(t *testing.T) {
			store := redistest.StartForTest(t, "--appendonly", "yes")
			front := redistest.StartProxy(t, store.Addr)
			url := "redis://" + front.Addr
			f := &fixture{t: t}
			dir := f.startNodes(url)
			s := f.openShop()
			if a, err := f.buy(s, 1); err != nil || a.Status != 201 {
				t.Fatalf("%v, %v", a, err)
			}
			redistest.Eventually(t, "a mark has the purchase", func() bool {
				files, _ := filepath.Glob(filepath.Join(dir, "*.mark"))
				for _, name := range files {
					if text, _ := os.ReadFile(name); bytes.Contains(text, []byte(`{"n":3,`)) {
						return true
					}
				}
				return false
			})
			empty(t, store, front)
			f.wantNotice(time.Now(), "the store is empty, and was not before")
			for _, n := range f.nodes {
				a := n.Must(t, 503, "POST", s.path, s.buyer.token, nil, "Idempotency-Key", "coin-after")
				if a.Code() != "store_unavailable" || !strings.Contains(a.String(), "parlor store accept") {
					t.Errorf("a purchase returns %s", a)
				}
				n.WaitReady(200)
			}
			redistest.Eventually(t, "the audit says that the store is empty", func() bool {
				a := f.must(200, "GET", "/api/v1/admin/audit", nodetest.AdminKey, nil)
				return a.Body["balanced"] == false && strings.Contains(a.String(), `"cause":"empty"`)
			})
			if out, err := parlor(t, url, "audit"); err == nil || !strings.Contains(out, "parlor store accept") {
				t.Errorf("the audit of the empty store: %v\n%s", err, out)
			}
			redistest.Eventually(t, "the operator reads what is missing", func() bool {
				status, err := parlor(t, url, "store", "status")
				return err != nil && strings.Contains(status, "the store is empty") &&
					strings.Contains(status, fmt.Sprintf("game %d, at least 3 ledger entries", s.game))
			})
			if out, err := parlor(t, url, "store", "accept"); err == nil {
				t.Errorf("it is accepted without a reason: %s", out)
			}
			if out, err := parlor(t, url, "store", "accept", "--reason", "a drill"); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			accepted := time.Now()
			for _, n := range f.nodes {
				redistest.Eventually(t, "money goes on", func() bool {
					ok, _ := f.readyCheck(n, "history")
					return ok
				})
			}
			if took := time.Since(accepted); took > noticeLimit {
				t.Errorf("the nodes went on after %v", took)
			}
			f.wantFreshNodes(s)
			if a, err := f.buy(f.openShop(), 1); err != nil || a.Status != 201 {
				t.Errorf("a purchase in the accepted store returns %v, %v", a, err)
			}
		})
	}
}

// wantFreshNodes fills an accepted store with other things under the numbers of those that were in
// it before, which the nodes must not remember: nobody restarts them.
func (f *fixture) wantFreshNodes(before *shop) {
	f.t.Helper()
	f.must(201, "POST", "/api/v1/admin/tokens", nodetest.AdminKey, map[string]any{
		"tokenId": "GEM", "tokenName": "Gem", "metadata": map[string]any{"assetName": "", "policyId": "", "decimals": "0"},
	})
	made := f.must(201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{
		"name": "Other", "welcomeGrant": map[string]any{"tokenId": "GEM", "amount": 10, "for": "any"},
	})
	game := number(f.t, made.Body["game"].(map[string]any)["id"])
	asset := f.must(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", game), nodetest.AdminKey, map[string]any{
		"name": "Ring", "tokenId": "GEM", "price": 4,
	})
	path := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", number(f.t, asset.Body["id"]))
	if game != before.game || path != before.path {
		f.t.Fatalf("the numbers are not those of before: game %d, %s", game, path)
	}
	for _, n := range f.nodes {
		// The token is of a player who was there before; another one has the number now.
		if a := n.Must(f.t, 401, "GET", "/api/v1/me", before.buyer.token, nil); a.Code() != "token_expired" {
			f.t.Errorf("the token of a player who is gone returns %s", a)
		}
		gem := f.guest(game, "Gem")
		a := n.Must(f.t, 201, "POST", path, gem.token, nil, "Idempotency-Key", "ring")
		if balance, _ := a.Body["balance"].(map[string]any); balance["tokenId"] != "GEM" || balance["amount"] != "6" {
			f.t.Errorf("a purchase for 4 GEM of 10 returns %s", a)
		}
		room := n.Must(f.t, 201, "POST", "/api/v1/game-session/create", gem.token, map[string]any{
			"entryTokenId": 1, "roomEntry": 6, "maxPlayers": 2,
		})
		if token, _ := room.Body["entryToken"].(map[string]any); token["tokenId"] != "GEM" {
			f.t.Errorf("a room with a stake of GEM is %s", room)
		}
	}
}

// purchasesUnderCut is how many purchases are made while replication is cut.
func purchasesUnderCut(t *testing.T) int64 {
	text := os.Getenv("PARLOR_TEST_PURCHASES")
	if text == "" {
		return 1000
	}
	return testkit.Must(strconv.ParseInt(text, 10, 64))(t)
}

func TestInReplicaModeNoAcknowledgedPurchaseIsLost(t *testing.T) {
	master := redistest.StartForTest(t, "--repl-diskless-sync-delay", "0")
	link := redistest.StartProxy(t, master.Addr)
	replica := redistest.StartReplica(t, link.Addr)
	front := redistest.StartProxy(t, master.Addr)
	f := &fixture{t: t}
	f.startNodes("redis://"+front.Addr, "PARLOR_DURABILITY=replica")
	s := f.openShop()
	total := purchasesUnderCut(t)

	var next, unknown atomic.Int64
	acknowledged := make([]atomic.Bool, total)
	var buyers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 32 {
		buyers.Go(func() {
			for ctx.Err() == nil {
				n := next.Add(1) - 1
				if n >= total {
					return
				}
				a, err := f.buy(s, n)
				switch {
				case err != nil:
				case a.Status == 201:
					acknowledged[n].Store(true)
				case a.Code() == "outcome_unknown":
					unknown.Add(1)
				case a.Code() != "store_unavailable":
					t.Errorf("a purchase returns %s", a)
				}
			}
		})
	}
	redistest.Eventually(t, "half of the purchases are made", func() bool { return s.sold.Load() >= total/2 })
	link.Cut()
	redistest.Eventually(t, "a purchase is not confirmed", func() bool { return unknown.Load() > 0 })
	for _, n := range f.nodes {
		redistest.Eventually(t, "a node says that no replica follows", func() bool {
			a, err := n.Do(t.Context(), "GET", "/readyz", "", nil)
			return err == nil && a.Status == 503 && strings.Contains(a.String(), "replicas in step")
		})
	}
	buyers.Wait()
	testkit.Check(t, redistest.Dial(t, replica).ReplicaOf(t.Context(), "NO", "ONE").Err())
	front.Retarget(replica.Addr)
	redistest.StartReplica(t, replica.Addr)
	for _, n := range f.nodes {
		n.WaitReady(200)
	}
	lost, sold := 0, 0
	for n := range total {
		if !acknowledged[n].Load() {
			continue
		}
		sold++
		a, err := f.buy(s, n)
		if err != nil || a.Status != 201 {
			t.Fatalf("purchase %d again: %v, %v", n, a, err)
		}
		if a.Header.Get("Idempotent-Replayed") != "true" {
			lost++
		}
	}
	t.Logf("%d of %d purchases were acknowledged, %d were not confirmed; %d acknowledged ones were lost", sold, total,
		unknown.Load(), lost)
	if lost > 0 {
		t.Errorf("%d of %d acknowledged purchases were lost", lost, sold)
	}
	f.wantSumsAgree() // what no replica confirmed, and nobody was told of, may be a loss
}
