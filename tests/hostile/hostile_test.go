// Package hostile lets one guest at one address do its worst to two nodes and a small Redis, while
// others play for money.
package hostile

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire/wiretest"
	"github.com/parlor-games/parlor/internal/players/progress"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

var (
	attackFor = flag.Duration("attack", 6*time.Second, "how long the attack takes")
	playFor   = flag.Duration("baseline", 3*time.Second, "how long others play before it")
	maxRatio  = flag.Float64("ratio", 0, "most µs of the store for an honest call, in those before; 0: report only")
)

func TestMain(m *testing.M) {
	if encoded := os.Getenv(attackEnv); encoded != "" {
		os.Exit(attack(encoded))
	}
	if encoded := os.Getenv(floodEnv); encoded != "" {
		os.Exit(flood(encoded))
	}
	os.Exit(redistest.Wrap(nodetest.Main)(m))
}

const honestPlayers = 20

// world is the installation that is attacked.
type world struct {
	t             *testing.T
	nodes         [2]*nodetest.Node
	db            *redis.Client
	game, token   int64
	asset         int64
	serverKey     string
	players       []*honest
	calls, failed atomic.Int64
	limited       atomic.Int64
	failures      sync.Map // what failed → true
	rooms         sync.Map // ids of honest rooms → true
}

// honest is a player who does nothing wrong, at an address of its own.
type honest struct {
	id      int64
	token   string
	address string
	saves   *websocket.Conn
	version int
}

func TestOneHostileGuestHarmsNobody(t *testing.T) {
	server := redistest.StartForTest(t, "--maxmemory", "256mb", "--appendonly", "yes", "--appendfsync", "always",
		"--slowlog-max-len", "100000")
	w := &world{t: t, db: redistest.Dial(t, server)}
	for i := range w.nodes {
		w.nodes[i] = nodetest.Start(t, server.URL(), "PARLOR_TRUSTED_PROXIES=127.0.0.1/32", "PARLOR_DURABILITY=disk")
	}
	w.setUp()
	before := w.usedMemory()

	quiet := w.measure(*playFor, nil)
	memory := w.usedMemory()
	began := time.Now()
	wait := startAttack(t, w.target())
	var report string
	attacked := w.measure(*attackFor, func() { report = wait() })
	grown := w.usedMemory() - memory
	bound := quotaBytes(time.Since(began))
	t.Logf("what the attacker got:\n%s", report)

	w.report(quiet, attacked)
	t.Logf("the store has %d KiB more; the quotas of the attacker allow %d KiB", grown>>10, bound>>10)
	if grown > bound {
		t.Errorf("the store has grown by more than the quotas allow")
	}
	if n := w.failed.Load() + w.limited.Load(); n > 0 || w.calls.Load() == 0 {
		w.failures.Range(func(what, _ any) bool { t.Log(what); return true })
		t.Errorf("%d of %d honest calls failed, %d of them by a rate limit", n, w.calls.Load(), w.limited.Load())
	}
	for _, p := range w.players {
		if held := w.held(p.id); held != "0" {
			t.Errorf("an honest player holds %s", held)
		}
	}

	w.letADayPass()
	for key := range w.scan("{e:*}:wallet:*") {
		if strings.HasSuffix(key, ":lines") {
			continue
		}
		for token, balance := range w.db.HGetAll(t.Context(), key).Val() {
			if _, held, ok := strings.Cut(balance, "|"); ok && held != "0" {
				t.Errorf("%s holds %s %s", key, held, token)
			}
		}
	}
	w.audit(server)
	w.requireOnlyAccounts(before)
}

// setUp makes the game, its sword and its honest players.
func (w *world) setUp() {
	operator := func(status int, path string, body any) nodetest.Response {
		return w.nodes[0].Must(w.t, status, http.MethodPost, path, nodetest.AdminKey, body)
	}
	gold := operator(201, "/api/v1/admin/tokens", map[string]any{
		"tokenId": "GOLD", "tokenName": "Gold",
		"metadata": map[string]any{"assetName": "676f6c64", "policyId": "ab01", "decimals": "2"},
	})
	game := operator(201, "/api/v1/admin/games", map[string]any{
		"name":         "Duel",
		"welcomeGrant": map[string]any{"tokenId": "GOLD", "amount": 100_000, "for": "any"}, "settings": map[string]any{},
	})
	w.token, w.game = number(w.t, gold.Body["id"]), number(w.t, game.Body["game"].(map[string]any)["id"])
	w.serverKey = game.Body["serverKey"].(string)
	sword := operator(201, fmt.Sprintf("/api/v1/admin/games/%d/assets", w.game), map[string]any{
		"name": "Sword", "tokenId": "GOLD", "price": 0.01,
	})
	w.asset = number(w.t, sword.Body["id"])
	for i := range honestPlayers {
		p := &honest{address: fmt.Sprintf("198.51.100.%d", i+1)}
		in := w.nodes[0].Must(w.t, 201, http.MethodPost, "/api/v1/auth/guest", "", map[string]any{"gameId": w.game},
			"X-Forwarded-For", p.address)
		p.id, p.token = number(w.t, in.Body["user"].(map[string]any)["id"]), in.Body["accessToken"].(string)
		header := http.Header{"Authorization": {"Bearer " + p.token}, "X-Forwarded-For": {p.address}}
		url := "ws" + strings.TrimPrefix(w.nodes[i%2].URL, "http") + "/api/v1/game-data/save"
		conn, _ := testkit.Must2(websocket.DefaultDialer.Dial(url, header))(w.t)
		w.t.Cleanup(func() { _ = conn.Close() })
		p.saves = conn
		w.players = append(w.players, p)
	}
}

func number(t *testing.T, v any) int64 {
	t.Helper()
	return testkit.Must(v.(wiretest.Number).Int64())(t, "%v is not an integer", v)
}

func (w *world) target() target {
	what := target{Game: w.game, Token: w.token, Asset: w.asset, For: attackFor.Milliseconds()}
	for _, n := range w.nodes {
		what.Nodes = append(what.Nodes, n.URL)
	}
	for _, p := range w.players {
		what.Victims = append(what.Victims, p.id)
	}
	return what
}

// play lets two players play for a stake, buy a sword and save, one call after the other.
func (w *world) play(ctx context.Context, host, guest *honest) {
	const session = "/api/v1/game-session/"
	opened := w.call(201, host, host.token, session+"create", map[string]any{
		"entryTokenId": w.token, "roomEntry": 1, "maxPlayers": 2, "visibility": "unlisted",
	})
	id, ok := opened["roomId"].(string)
	if !ok {
		return
	}
	w.rooms.Store(id, true)
	room := map[string]any{"roomId": id}
	w.call(200, guest, guest.token, session+"join", room)
	w.call(200, guest, guest.token, session+"ready", map[string]any{"roomId": id, "ready": true})
	w.call(200, host, host.token, session+"start", room)
	server := &honest{address: "192.0.2.1"}
	w.call(200, server, w.serverKey, session+"finish", map[string]any{
		"roomId":  id,
		"results": []map[string]any{{"userId": host.id, "place": 1}, {"userId": guest.id, "place": 2}},
	})
	for _, p := range []*honest{host, guest} {
		w.call(201, p, p.token, fmt.Sprint("/api/v1/user-assets/add/game-asset/", w.asset), nil)
		w.save(ctx, p)
	}
}

// call sends one honest request, with a key of its own.
func (w *world) call(status int, p *honest, token, path string, body any) map[string]any {
	node := w.nodes[w.calls.Add(1)%2]
	r, err := node.Do(context.Background(), http.MethodPost, path, token, body,
		"X-Forwarded-For", p.address, "Idempotency-Key", strconv.FormatUint(rand.Uint64(), 36))
	if err != nil || r.Status != status {
		if r.Status == http.StatusTooManyRequests {
			w.limited.Add(1)
		} else {
			w.failed.Add(1)
		}
		w.failures.Store(fmt.Sprint(path, " ", r.Code(), " ", err), true)
		return nil
	}
	return r.Body
}

func (w *world) save(_ context.Context, p *honest) {
	w.calls.Add(1)
	message := fmt.Sprintf(`{"id":"%d","type":"save","data":{"slot":"main","version":%d,"state":{"level":%d}}}`,
		p.version, p.version, p.version)
	_ = p.saves.SetReadDeadline(time.Now().Add(10 * time.Second))
	err := p.saves.WriteMessage(websocket.TextMessage, []byte(message))
	var reply []byte
	for err == nil {
		_, reply, err = p.saves.ReadMessage()
		if strings.Contains(string(reply), fmt.Sprintf(`"replyTo":"%d"`, p.version)) {
			break
		}
	}
	if err != nil || !strings.Contains(string(reply), `"ok":true`) {
		w.failed.Add(1)
		w.failures.Store(fmt.Sprintf("save: %s, %v", reply, err), true)
		return
	}
	p.version++
}

// storeTimes are the µs of the store for the calls of honest players, by script.
type storeTimes map[string][]float64

// measure lets the players play for a time, and while does what else is to happen. It returns how
// long the store ran each script of theirs, by the store's own log of commands: the time that a
// command waits for others is not in it.
func (w *world) measure(d time.Duration, while func()) storeTimes {
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	w.db.ConfigSet(ctx, "slowlog-log-slower-than", "0")
	times := storeTimes{}
	var group sync.WaitGroup
	for i := 0; i < len(w.players); i += 2 {
		group.Go(func() {
			tick := time.NewTicker(500 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				w.play(ctx, w.players[i], w.players[i+1])
				select {
				case <-ctx.Done():
				case <-tick.C:
				}
			}
		})
	}
	played := make(chan struct{})
	go func() { group.Wait(); close(played) }()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-played:
			ended = true
		case <-tick.C:
		}
		for range controlCalls {
			control.Run(ctx, w.db, []string{"{p}:control"})
		}
		w.collect(times)
	}
	if while != nil {
		while()
	}
	w.db.ConfigSet(context.Background(), "slowlog-log-slower-than", "-1")
	w.db.Do(context.Background(), "SLOWLOG", "RESET") // its entries take the memory that is measured next
	return times
}

// control is a script that always does the same, whatever is stored: what it takes longer while the
// nodes are attacked is the machine, on which everything runs, and not the store.
var control = redis.NewScript(`
	for i = 1, 40 do
		redis.call('HSET', KEYS[1], i, i)
		redis.call('HGET', KEYS[1], i)
	end
	return redis.call('DEL', KEYS[1])`)

const (
	controlName  = "(control)"
	controlCalls = 5 // five times a second
)

var roomInKey = regexp.MustCompile(`}:room:([0-9a-f-]{36})`)

// collect adds the commands since the last call that are those of honest players: their script has
// the key of a wallet, a save or a room of theirs.
func (w *world) collect(times storeTimes) {
	ctx := context.Background()
	list, err := w.db.SlowLogGet(ctx, -1).Result()
	testkit.Report(w.t, err, "read the log of commands")
	w.db.Do(ctx, "SLOWLOG", "RESET")
	names := map[string]string{}
	for name, s := range scripts.All() {
		names[s.SHA] = name
		if with := s.WithFeed(); with != nil {
			names[with.SHA] = name
		}
	}
	mine := map[string]bool{}
	for _, p := range w.players {
		mine[keys.Wallet(w.game, p.id)], mine[keys.Saves(p.id, w.game)] = true, true
	}
	for _, command := range list {
		if len(command.Args) > 3 && command.Args[3] == "{p}:control" {
			times[controlName] = append(times[controlName], float64(command.Duration.Microseconds()))
		}
		if len(command.Args) < 3 || names[command.Args[1]] == "" {
			continue
		}
		isMine := slices.ContainsFunc(command.Args, func(key string) bool {
			if m := roomInKey.FindStringSubmatch(key); m != nil {
				_, ok := w.rooms.Load(m[1])
				return ok
			}
			return mine[key]
		})
		if name := names[command.Args[1]]; isMine {
			times[name] = append(times[name], float64(command.Duration.Microseconds()))
		}
	}
}

// report prints the medians of both times, and fails when the store took longer for an honest call
// while it was attacked than it may. The machine is the same for both, and slower for all of its
// processes while it is attacked: what the control takes longer is not counted.
func (w *world) report(quiet, attacked storeTimes) {
	var before, during, weight float64
	machine := 1.0
	text := ""
	for name, list := range attacked {
		if len(quiet[name]) < 5 || len(list) < 5 {
			continue
		}
		a, b, n := median(quiet[name]), median(list), float64(len(list))
		if name == controlName {
			machine = b / a
		} else {
			before, during, weight = before+a*n, during+b*n, weight+n
		}
		text += fmt.Sprintf("%-18s %5.0f µs before, %5.0f µs during the attack, %d calls\n", name, a, b, len(list))
	}
	ratio := during / before / machine
	w.t.Logf("medians of the store's time for a script of an honest player:\n%stogether %.0f µs and %.0f µs: %.2f times; "+
		"without the machine, which is %.2f times as slow: %.2f times",
		text, before/weight, during/weight, during/before, machine, ratio)
	if *maxRatio > 0 && !(ratio <= *maxRatio) {
		w.t.Errorf("the store takes %.2f times as long for an honest call; at most %.2f are accepted", ratio, *maxRatio)
	}
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

func (w *world) usedMemory() int64 {
	w.t.Helper()
	info := w.db.InfoMap(w.t.Context(), "memory").Item("Memory", "used_memory_dataset")
	return testkit.Must(strconv.ParseInt(info, 10, 64))(w.t)
}

// Bytes of what a quota counts, each as measured with its indexes and rounded up.
const (
	accountBytes  = 12 << 10 // user, identity, session, wallet, grant
	roomBytes     = 14 << 10 // with 4 KiB of metadata, code, indexes, events of opening and end
	seatBytes     = 1 << 10  // ledger and lines of an entry and its refund
	responseBytes = 3 << 10  // stored, of a sign-in
	receiptBytes  = 512
	familyBytes   = 640 // of a session
	eventBytes    = 320
	pairBytes     = 512     // of two players, and their lists
	fixedBytes    = 6 << 20 // buffers of connections, fragments, and what the honest players left
)

// quotaBytes returns what the quotas let two accounts at one address leave behind in a time.
func quotaBytes(d time.Duration) int64 {
	limits := ratelimit.DefaultLimits()
	allowed := func(class ratelimit.Class) int64 {
		l := limits[class]
		// A node may be late with its report by a share; there are two of them.
		return l.Burst*3/2 + int64(d.Seconds())*l.PerSecond + int64(d.Hours()/24*float64(l.PerDay))
	}
	const accounts = 2
	perAccount := allowed(ratelimit.Rooms)*roomBytes + allowed(ratelimit.Joins)*seatBytes +
		allowed(ratelimit.KeyedRequests)*receiptBytes + allowed(ratelimit.RequiredKeys)*receiptBytes +
		allowed(ratelimit.Money)*eventBytes + allowed(ratelimit.Write)*pairBytes + 2*progress.MaxGuestTotalBytes
	return accounts*perAccount + allowed(ratelimit.SignUp)*accountBytes + allowed(ratelimit.SignIn)*familyBytes +
		min(allowed(ratelimit.KeyedSignIns), allowed(ratelimit.SignIn))*responseBytes + fixedBytes
}

func (w *world) held(user int64) string {
	balance := w.db.HGet(w.t.Context(), keys.Wallet(w.game, user), "GOLD").Val()
	_, held, _ := strings.Cut(balance, "|")
	return held
}

// scan returns the keys that match a pattern.
func (w *world) scan(pattern string) map[string]bool {
	w.t.Helper()
	found := map[string]bool{}
	iterator := w.db.Scan(w.t.Context(), 0, pattern, 1000).Iterator()
	for iterator.Next(w.t.Context()) {
		found[iterator.Val()] = true
	}
	testkit.Check(w.t, iterator.Err())
	return found
}

// letADayPass makes every room as old as if a day had passed, and every receipt and session expire,
// and waits until the nodes have removed the rooms.
func (w *world) letADayPass() {
	for _, pattern := range []string{"*:receipt:*", "{i:*}:answer:*", "{q:*}:rate:*", "{t:*}:ticket", "*:made"} {
		for key := range w.scan(pattern) {
			w.db.PExpire(w.t.Context(), key, time.Millisecond)
		}
	}
	old := strconv.FormatInt(time.Now().Add(-48*time.Hour).UnixMilli(), 10)
	testkit.Report(w.t, redistest.Poll(2*time.Minute, func() error {
		left := 0
		for key := range w.scan("*:room:*") {
			tag, id, _ := strings.Cut(key, ":room:")
			if strings.HasSuffix(key, ":events") || id == "next" {
				continue
			}
			left++
			if err := age.Run(w.t.Context(), w.db, []string{key, tag + ":rooms:due"}, id, old).Err(); err != nil {
				return err
			}
		}
		if left > 0 {
			return fmt.Errorf("%d rooms are left", left)
		}
		return nil
	}))
}

// age makes a room, which may just have been removed, as old as its argument says.
var age = redis.NewScript(`
	local live, finished = unpack(redis.call('HMGET', KEYS[1], 'live', 'finished'))
	if not live or (finished or string.match(live, '[^|]*$')) == ARGV[2] then return 0 end
	local fields = {'live', (string.gsub(live, '[^|]*$', ARGV[2])), 'created', ARGV[2]}
	for _, field in ipairs({'started', 'finished'}) do
		if redis.call('HEXISTS', KEYS[1], field) == 1 then
			fields[#fields + 1] = field
			fields[#fields + 1] = ARGV[2]
		end
	end
	redis.call('HSET', KEYS[1], unpack(fields))
	return redis.call('ZADD', KEYS[2], 1, ARGV[1])`)

// audit runs `parlor audit --deep`.
func (w *world) audit(server *redistest.Server) {
	cmd := exec.Command(nodetest.Binary(w.t), "audit", "--deep")
	cmd.Env = []string{"PARLOR_REDIS_URL=" + server.URL(), "HOME=" + os.TempDir()}
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Errorf("parlor audit --deep: %v\n%s", err, out)
	}
}

// lasting are the keys that stay: accounts with their friends, money and saves, one of each node's
// presence for each shard, and a few of the installation.
var lasting = regexp.MustCompile(
	`^\{p\}:|^\{g:|^\{u:|^\{f:|^\{l:|:alive$|^\{r\d+\}:(rooms:fence|room:next|presence)` +
		`|^\{e:\d+\}:(wallet|totals|ledger|asset|assets|inventory|mints|rooms:fence|room:next|presence)`)

// requireOnlyAccounts checks that nothing is left of the attack but accounts, and prints what these
// take.
func (w *world) requireOnlyAccounts(before int64) {
	byKind, total := map[string]int64{}, int64(0)
	for key := range w.scan("*") {
		if !lasting.MatchString(key) && !strings.Contains(key, ":rate:") {
			w.t.Errorf("%s is left", key)
		}
		_, kind, _ := strings.Cut(key, "}:")
		kind = regexp.MustCompile(`\d+|:.*`).ReplaceAllString(kind, "")
		size := w.db.MemoryUsage(w.t.Context(), key).Val()
		byKind[kind] += size
		total += size
	}
	grown := w.usedMemory() - before
	w.t.Logf("a day later the store has %d KiB more; accounts, money and saves take %d KiB: %v",
		grown>>10, total>>10, byKind)
	if grown > total*5/4+fixedBytes {
		w.t.Errorf("more is left than accounts, money and saves")
	}
}
