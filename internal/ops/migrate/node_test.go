package migrate_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/ops/migrate"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Wrap(nodetest.Main)(m)) }

// parlorCommand returns a command on a store, with its output.
func parlorCommand(t *testing.T, redisURL string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	c := exec.CommandContext(t.Context(), nodetest.Binary(t), args...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PARLOR_REDIS_URL=" + redisURL}
	c.Stdout, c.Stderr = &out, &out
	return c, &out
}

func mustRun(t *testing.T, redisURL string, args ...string) string {
	t.Helper()
	c, out := parlorCommand(t, redisURL, args...)
	if err := c.Run(); err != nil {
		t.Fatalf("parlor %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out.String()
}

// firstWrite closes began at the first write.
type firstWrite struct {
	text  bytes.Buffer
	once  sync.Once
	began chan struct{}
}

func (w *firstWrite) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.began) })
	return w.text.Write(p)
}

// TestTheCommandMayBeKilledAtAnyTime kills the command again and again, each time when it has
// reported its progress for the first time and a while after that, and lets it end.
func TestTheCommandMayBeKilledAtAnyTime(t *testing.T) {
	db := newOldStore(t)
	began := time.Now()
	run(t, db)
	longest := time.Since(began)
	want := readStore(t, db)
	reload(t, db)
	url := redistestURL(t, db)
	layouts, kills := map[string]int{}, 0
	for kills < 20 {
		c, _ := parlorCommand(t, url, "upgrade", "migrate", "--lease", "100ms")
		out := &firstWrite{began: make(chan struct{})}
		c.Stdout, c.Stderr = out, out
		testkit.Check(t, c.Start())
		<-out.began
		timer := time.AfterFunc(rand.N(longest), func() { _ = c.Process.Kill() })
		err := c.Wait()
		timer.Stop()
		switch {
		case err == nil: // it was faster
			wantSame(t, readStore(t, db), want)
			reload(t, db)
		case c.ProcessState.ExitCode() < 0:
			kills++
			layouts[db.Client.HGet(t.Context(), keys.Meta(), keys.MetaLayoutField).Val()]++
		case !strings.Contains(out.text.String(), "lost its lease"): // the machine was busy
			t.Fatalf("%v\n%s", err, out.text.String())
		}
	}
	t.Logf("layouts after a kill: %v", layouts)
	mustRun(t, url, "upgrade", "migrate")
	wantSame(t, readStore(t, db), want)
}

// TestPlayersGoOnAfterAMigration migrates a store as an operator does, and plays on it with today's
// node.
func TestPlayersGoOnAfterAMigration(t *testing.T) {
	db := redistest.Single(t)
	head := loadDump(t, db, time.Now())
	url := redistestURL(t, db)
	settings := []string{
		"PARLOR_ROOM_SHARDS=4", "PARLOR_DURABILITY=memory", "PARLOR_RATE_LIMITS=off",
	}
	wantRefused := func(layout string) {
		t.Helper()
		db.Client.HSet(t.Context(), keys.Meta(), keys.MetaLayoutField, layout)
		refused, _ := nodetest.StartProgram(t, nodetest.Binary(t), url, settings...)
		if code := refused.Wait(); code != 78 || !strings.Contains(refused.Log(), "parlor upgrade migrate") {
			t.Fatalf("a node on layout %s: %d, %s", layout, code, refused.Log())
		}
	}
	wantRefused("1>3:remove")
	wantRefused("1>3")
	wantRefused("1")
	free := db.Client.HGet(t.Context(), "{e:main}:wallet:1", "free:GOLD").Val()

	if out := mustRun(t, url, "upgrade", "migrate"); !strings.Contains(out, "rooms 14 of 14") {
		t.Errorf("the progress does not count rooms:\n%s", out)
	}
	wantAudit := func() {
		t.Helper()
		if out := mustRun(t, url, "audit", "--full"); !strings.HasSuffix(out, "\nbalanced\n") {
			t.Fatal(out)
		}
	}
	wantAudit()
	g := &migratedGame{t: t, node: nodetest.Start(t, url, settings...), serverKey: head.ServerKeys[0]}

	ann, bob := g.signIn("Ann"), g.signIn("Bob")
	if ann.id != 1 || bob.id != 2 {
		t.Fatalf("Ann is %d and Bob is %d", ann.id, bob.id)
	}
	again := g.must(http.StatusOK, http.MethodPost, "/api/v1/auth/refresh", "",
		map[string]any{"refreshToken": head.RefreshToken})
	if id := fmt.Sprint(again.Body["user"].(map[string]any)["id"]); id != "1" {
		t.Errorf("the refresh token of Ann is of %s", id)
	}
	exchanged := g.must(http.StatusCreated, http.MethodPost, "/api/v1/auth/exchange", g.serverKey,
		map[string]any{"externalId": "steam:1"})
	if id := fmt.Sprint(exchanged.Body["user"].(map[string]any)["id"]); id != "1" {
		t.Errorf("the linked account of Ann is of %s", id)
	}

	g.wantText(ann, "/api/v1/user-balance/token-balances",
		`"amount":"`+free+`"`, `"heldAmount":"500"`, `"amount":"4503599627370496"`, `"heldAmount":"4503599627370495"`)
	g.wantText(ann, "/api/v1/user-balance/ledger?limit=100", `"reason":"a reason | with, a pipe; and ü 100%"`,
		`"reason":"purchase"`, `"reason":"grant"`)
	g.wantText(ann, "/api/v1/user-assets", `"name":"Hat"`, `"owned":2`)
	g.wantText(ann, "/api/v1/friends", `"username":"Bob|the|Builder"`, `"username":"Cyd"`, `"username":"Dan"`)
	g.wantText(bob, "/api/v1/friends", `"username":"Dan"`, "blocked")
	saves := g.must(http.StatusOK, http.MethodGet, "/api/v1/admin/users/1/saves/main", nodetest.AdminKey, nil)
	if !strings.Contains(string(saves.Raw), `"name":"Ünï|code"`) || fmt.Sprint(saves.Body["version"]) != "2" {
		t.Errorf("the save of Ann: %s", saves)
	}
	resent, err := g.node.Do(t.Context(), http.MethodPost, "/api/v1/user-assets/add/game-asset/1", ann.token,
		map[string]any{"quantity": 2}, "Idempotency-Key", head.BoughtKey)
	if err != nil || resent.Code() != "idempotency_key_reused" {
		t.Errorf("a purchase that is sent again: %v, %v", resent, err)
	}

	created, started := g.roomWith(ann, "CREATED", "created"), g.roomWith(ann, "STARTED", "started")
	dan, cyd := g.signIn("Dan"), g.signIn("Cyd")
	joined := g.must(http.StatusOK, http.MethodPost, "/api/v1/game-session/join", dan.token,
		map[string]any{"roomId": created})
	if fmt.Sprint(joined.Body["totalWagerAmount"]) != "750" {
		t.Errorf("the room after a join: %s", joined)
	}
	finished := g.must(http.StatusOK, http.MethodPost, "/api/v1/game-session/finish", g.serverKey, map[string]any{
		"roomId": started,
		"results": []any{
			map[string]any{"userId": cyd.id, "place": 1},
			map[string]any{"userId": ann.id, "place": 2},
			map[string]any{"userId": bob.id, "place": 3},
		},
	}, "Idempotency-Key", "finish")
	for _, part := range []string{`"status":"FINISHED"`, `"amount":"665"`, `"amount":"285"`, `"rakeAmount":"50"`} {
		if !strings.Contains(string(finished.Raw), part) {
			t.Errorf("the finished room lacks %s: %s", part, finished)
		}
	}
	g.must(http.StatusCreated, http.MethodPost, "/api/v1/user-assets/add/game-asset/1", ann.token,
		map[string]any{"quantity": 1}, "Idempotency-Key", "third")
	for _, status := range []string{"FINISHED", "CANCELLED"} { // rooms that ended before the migration
		list := g.must(http.StatusOK, http.MethodGet, "/api/v1/game-session/list?status="+status, ann.token, nil)
		if len(list.Body["items"].([]any)) == 0 {
			t.Errorf("no room is %s", status)
		}
	}
	wantAudit()
	if g.node.HasEnded() || strings.Contains(g.node.Log(), "level=ERROR") {
		t.Errorf("the node has failed:\n%s", g.node.Log())
	}
}

type migratedGame struct {
	t         *testing.T
	node      *nodetest.Node
	serverKey string
}

type migratedPlayer struct {
	id    int64
	token string
}

func (g *migratedGame) must(
	status int, method, path, bearer string, body any, headers ...string,
) nodetest.Response {
	g.t.Helper()
	return g.node.Must(g.t, status, method, path, bearer, body, headers...)
}

// signIn signs a player in as TestGenerateDump did.
func (g *migratedGame) signIn(name string) migratedPlayer {
	g.t.Helper()
	session := g.must(http.StatusCreated, http.MethodPost, "/api/v1/auth/guest", "",
		map[string]any{"gameId": 1, "deviceSecret": "device-of-" + name + "-0123456789-0123456789"})
	var p migratedPlayer
	testkit.Must(fmt.Sscan(fmt.Sprint(session.Body["user"].(map[string]any)["id"]), &p.id))(g.t, "%s", session)
	p.token = session.Body["accessToken"].(string)
	return p
}

// wantText fails the test unless a response has every part.
func (g *migratedGame) wantText(p migratedPlayer, path string, parts ...string) {
	g.t.Helper()
	r := g.must(http.StatusOK, http.MethodGet, path, p.token, nil)
	for _, part := range parts {
		if !strings.Contains(string(r.Raw), part) {
			g.t.Errorf("%s lacks %s: %s", path, part, r)
		}
	}
}

// roomWith returns the id of the room in a state that has a note in its metadata.
func (g *migratedGame) roomWith(p migratedPlayer, status, note string) string {
	g.t.Helper()
	list := g.must(http.StatusOK, http.MethodGet, "/api/v1/game-session/list?status="+status, p.token, nil)
	for _, item := range list.Body["items"].([]any) {
		room := item.(map[string]any)
		if fmt.Sprint(room["metadata"]) == fmt.Sprint(map[string]any{"note": note}) {
			return room["roomId"].(string)
		}
	}
	g.t.Fatalf("no room %s has the note %s: %s", status, note, list)
	return ""
}

// storeUser makes the user with which nodes sign in, as deploy has it, on every server of a store.
// It returns the store's address with that user.
func storeUser(t *testing.T, db *redisdb.DB, storeURL string) string {
	t.Helper()
	text := testkit.Must(os.ReadFile("../../../deploy/redis/users.acl"))(t)
	_, rest, _ := strings.Cut(string(text), "\nuser parlor ")
	rules, _, found := strings.Cut(rest, "\n")
	if !found || !strings.Contains(rules, "#SHA256_PARLOR ") {
		t.Fatalf("deploy has no user parlor: %q", rules)
	}
	args := []any{"ACL", "SETUSER", "parlor"}
	for rule := range strings.FieldsSeq(strings.Replace(rules, "#SHA256_PARLOR", ">secret", 1)) {
		args = append(args, rule)
	}
	redistest.EachMaster(t, db, func(ctx context.Context, server *redis.Client) error {
		return server.Do(ctx, args...).Err()
	})
	return strings.Replace(storeURL, "://", "://parlor:secret@", 1)
}

// TestTheStoresUserMayMigrate migrates with the rights that nodes have, and refuses nothing.
func TestTheStoresUserMayMigrate(t *testing.T) {
	redistest.EachStoreURL(t, func(t *testing.T, storeURL string, db *redisdb.DB) {
		loadDump(t, db, time.Now())
		url := storeUser(t, db, storeURL)
		mustRun(t, url, "upgrade", "migrate", "--dry-run")
		mustRun(t, url, "upgrade", "migrate")
		if out := mustRun(t, url, "audit", "--full"); !strings.HasSuffix(out, "\nbalanced\n") {
			t.Error(out)
		}
		mustRun(t, url, "upgrade", "check")
		finish, out := parlorCommand(t, url, "upgrade", "finish")
		if err := finish.Run(); err == nil || !strings.Contains(out.String(), "there is nothing to finish") {
			t.Errorf("finish: %v\n%s", err, out)
		}
		redistest.EachMaster(t, db, func(ctx context.Context, server *redis.Client) error {
			refused, err := server.ACLLog(ctx, 100).Result()
			for _, e := range refused {
				t.Errorf("%s was refused %s (%s)", e.Username, e.Object, e.Reason)
			}
			return err
		})
	})
}

// TestAClusterIsMigrated migrates a store whose keys are on three servers.
func TestAClusterIsMigrated(t *testing.T) {
	db := redistest.Cluster(t)
	loadDump(t, db, time.Now())
	testkit.Must(migrate.Run(t.Context(), db, migrate.Options{}))(t)
	wantBalanced(t, db)
	testkit.Report(t, db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 4}))
}
