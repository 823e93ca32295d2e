package story

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// deploySecrets runs make-secrets.sh on a copy of the folder deploy, and returns the folder of the
// secrets.
func deploySecrets(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	testkit.Check(t, os.CopyFS(dir, os.DirFS("../../deploy")))
	secrets := filepath.Join(dir, "secrets")
	testkit.Check(t, os.RemoveAll(secrets)) // an operator's own
	before := map[string]string{}
	for range 2 { // the second time changes nothing
		if out, err := exec.Command("bash", filepath.Join(dir, "make-secrets.sh")).CombinedOutput(); err != nil {
			t.Fatalf("make-secrets.sh: %v\n%s", err, out)
		}
		made := map[string]string{}
		testkit.Check(t, fs.WalkDir(os.DirFS(secrets), ".", func(name string, file fs.DirEntry, err error) error {
			if err == nil && !file.IsDir() {
				made[name] = readSecret(t, secrets, name)
			}
			return err
		}))
		if len(before) > 0 && !maps.Equal(made, before) {
			t.Error("the second run of make-secrets.sh changed what the first one had made")
		}
		before = made
	}
	return secrets
}

func readSecret(t *testing.T, dir, name string) string {
	t.Helper()
	text := testkit.Must(os.ReadFile(filepath.Join(dir, name)))(t)
	return strings.TrimSpace(string(text))
}

// With the users that an operator gets, a node does everything that it has to, and nothing is
// refused on the way.
func TestTheStoresUserMayDoWhatParlorNeedsAndNoMore(t *testing.T) {
	t.Parallel()
	secrets := deploySecrets(t)
	// This test is a user as well, to read what was refused.
	acl := readSecret(t, secrets, "redis_users.acl") + "\nuser test on >test ~* &* +@all\n"
	file := filepath.Join(t.TempDir(), "users.acl")
	testkit.Check(t, os.WriteFile(file, []byte(acl), 0o600))
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always", "--aclfile", file)
	storeURL := testkit.Must(url.Parse(readSecret(t, secrets, "redis_url")))(t)
	if storeURL.User.Username() != "parlor" || storeURL.Host != "redis:6379" {
		t.Errorf("redis_url names %s at %s", storeURL.User.Username(), storeURL.Host)
	}
	storeURL.Host = store.Addr
	admin := redis.NewClient(&redis.Options{Addr: store.Addr, Username: "test", Password: "test"})
	t.Cleanup(func() { _ = admin.Close() })

	f := &fixture{t: t}
	adminKey := readSecret(t, secrets, "admin_key")
	for i := range f.nodes {
		f.nodes[i] = nodetest.Start(t, storeURL.String(), "PARLOR_ADMIN_KEY="+adminKey+","+nodetest.AdminKey,
			"PARLOR_SIGNING_KEY=", "PARLOR_SIGNING_KEY_FILE="+filepath.Join(secrets, "signing_key"))
	}
	op := f.setUp(nil)
	ann, bob := f.guest(op.game, "Ann"), f.guest(op.game, "Bob")
	sword := f.must(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", op.game), adminKey, map[string]any{
		"name": "Sword", "tokenId": "GOLD", "price": 7, "stock": 3,
	})
	f.must(201, "POST", fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", number(t, sword.Body["id"])), ann.token, nil,
		"Idempotency-Key", "sword")

	// A paid room from its start to its end, with a subscriber; and one that the sweep cancels.
	paid := map[string]any{"entryTokenId": op.tokenID, "roomEntry": 2.5, "maxPlayers": 2}
	room := f.must(201, "POST", "/api/v1/game-session/create", ann.token, paid).Body["roomId"].(string)
	body := map[string]any{"roomId": room}
	subscriber := f.subscribe(bob, room)
	f.must(200, "POST", "/join", bob.token, body)
	f.must(200, "POST", "/api/v1/game-session/start", ann.token, body)
	f.must(200, "POST", "/api/v1/game-session/finish", op.serverKey, map[string]any{
		"roomId": room, "results": []map[string]any{{"userId": bob.id, "place": 1}, {"userId": ann.id, "place": 2}},
	}, "Idempotency-Key", "end")
	redistest.Eventually(t, "the end of the room was heard", func() bool {
		events := subscriber.events()
		return events[len(events)-1].Type == "room.finished"
	})
	brief := f.must(201, "POST", "/api/v1/admin/games", adminKey, map[string]any{
		"name": "Brief", "settings": map[string]any{"idleTimeoutSeconds": 0.5},
		"welcomeGrant": map[string]any{"tokenId": "GOLD", "amount": 100, "for": "any"},
	})
	eve := f.guest(number(t, brief.Body["game"].(map[string]any)["id"]), "Eve")
	f.must(201, "POST", "/api/v1/game-session/create", eve.token, paid)
	f.must(200, "POST", "/api/v1/friends/"+fmt.Sprint(bob.id), ann.token, nil)
	redistest.Eventually(t, "the sweep has paid the stake back", func() bool {
		free, held := f.wallet(eve)
		return free == "10000" && held == "0"
	})
	saves := f.openSocket("/api/v1/game-data/save", ann)
	for _, message := range []struct {
		name string
		data map[string]any
	}{
		{"save", map[string]any{"slot": "main", "state": map[string]any{"level": 1}}},
		{"load", map[string]any{"slot": "main"}},
	} {
		if reply := saves.request(message.name, message.data); !*reply.OK {
			t.Errorf("%s: %s", message.name, reply.raw)
		}
	}
	f.must(200, "GET", "/api/v1/game-session/list", ann.token, nil)
	f.must(200, "GET", "/api/v1/user-balance/ledger?tokenId=GOLD", ann.token, nil)
	f.must(200, "GET", "/balancez", "", nil)
	f.must(200, "POST", "/api/v1/friends/"+fmt.Sprint(ann.id), bob.token, nil)
	f.must(204, "POST", "/api/v1/auth/logout", bob.token, nil)
	f.must(204, "DELETE", "/api/v1/me", eve.token, nil)
	audit := exec.Command(nodetest.Binary(t), "audit", "--deep")
	audit.Env = []string{"PATH=" + os.Getenv("PATH"), "PARLOR_REDIS_URL=" + storeURL.String()}
	if out, err := audit.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "\nbalanced\n") {
		t.Errorf("audit --deep: %v\n%s", err, out)
	}

	ctx := t.Context()
	entries := testkit.Must(admin.ACLLog(ctx, 100).Result())(t)
	for _, e := range entries {
		t.Errorf("%s was refused %s (%s)", e.Username, e.Object, e.Reason)
	}
	wantRefused(t, storeURL, "parlor", readSecret(t, secrets, "redis_password"), map[string]bool{
		"PING": true, "INFO": true, "GET {x}": true, "SET {x} 1": true, "PUBLISH x 1": true, "EVAL return(1) 0": true,
		"CONFIG GET maxmemory": false, "CONFIG SET maxmemory 1": false, "FLUSHALL": false, "FLUSHDB": false, "KEYS *": false,
		"SHUTDOWN": false, "ACL LIST": false, "ACL SETUSER eve on nopass ~* +@all": false,
		"REPLICAOF 192.0.2.1 6379": false, "CLIENT LIST": false, "MONITOR": false, "SAVE": false, "SLAVEOF NO ONE": false,
		"MIGRATE 192.0.2.1 6379 x 0 1": false, "MODULE LIST": false, "PSYNC ? -1": false, "SWAPDB 0 1": false,
	})
	wantRefused(t, storeURL, "parlor-backup", readSecret(t, secrets, "redis_backup_password"), map[string]bool{
		"PING": true, "INFO": true, "LASTSAVE": true,
		"GET {x}": false, "SET {x} 1": false, "SCAN 0": false, "EVAL return(1) 0": false, "CONFIG GET dir": false,
		"FLUSHALL": false, "PUBLISH x 1": false, "SUBSCRIBE x": false, "ACL LIST": false, "SHUTDOWN": false,
	})
	if err := redis.NewClient(&redis.Options{Addr: store.Addr}).Get(ctx, "x").Err(); !redis.HasErrorPrefix(err, "NOAUTH") {
		t.Errorf("without a user: %v", err)
	}

	// The backup is a whole copy.
	_, port, _ := strings.Cut(store.Addr, ":")
	backup := exec.Command("redis-cli", "-p", port, "--user", "parlor-backup", "--rdb", "-")
	backup.Env = append(os.Environ(), "REDISCLI_AUTH="+readSecret(t, secrets, "redis_backup_password"))
	if dump, err := backup.Output(); err != nil || !strings.HasPrefix(string(dump), "REDIS") {
		t.Errorf("redis-cli --rdb: %v, %d bytes", err, len(dump))
	}
}

// wantRefused checks which commands a user of the store may run.
func wantRefused(t *testing.T, storeURL *url.URL, user, password string, allowed map[string]bool) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: storeURL.Host, Username: user, Password: password, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	for _, command := range slices.Sorted(maps.Keys(allowed)) {
		var args []any
		for word := range strings.FieldsSeq(command) {
			args = append(args, word)
		}
		err := client.Do(context.Background(), args...).Err()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		if refused := redis.HasErrorPrefix(err, "NOPERM"); refused == allowed[command] || !refused && err != nil {
			t.Errorf("%s runs %s: %v", user, command, err)
		}
	}
}
