package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/secret"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"
)

func TestMain(m *testing.M) {
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "PARLOR_") {
			_ = os.Unsetenv(name)
		}
	}
	os.Exit(redistest.Wrap(nodetest.Main)(m))
}

// command executes a command line in this process and returns the exit status and what it printed.
func command(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	status = run(ctx, args, &out, &errs)
	return status, out.String(), errs.String()
}

// must executes a command line that succeeds and returns what it printed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	status, stdout, stderr := command(t, args...)
	if status != 0 {
		t.Fatalf("parlor %s exits %d:\n%s%s", strings.Join(args, " "), status, stdout, stderr)
	}
	return stdout
}

const (
	testAdminKey   = "operator-key-of-these-tests-7c1f40a9"
	testSigningKey = "signing-key-of-these-tests-91d2e6b3"
)

// setRequired sets every setting that serve needs.
func setRequired(t *testing.T, store string) {
	t.Helper()
	for name, value := range map[string]string{
		"PARLOR_REDIS_URL": store, "PARLOR_ADMIN_KEY": testAdminKey, "PARLOR_SIGNING_KEY": testSigningKey,
		"PARLOR_LISTEN": "127.0.0.1:0", "PARLOR_INTERNAL_LISTEN": "127.0.0.1:0",
		"PARLOR_ARCHIVE": "file://" + t.TempDir(), "PARLOR_STATE_DIR": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
}

func TestServePrintsEveryErrorOnItsLineAndExits78(t *testing.T) {
	t.Setenv("PARLOR_ROOM_SHARDS", "0")
	t.Setenv("PARLOR_LISTNE", ":80")
	t.Setenv("PARLOR_REDIS_URL", "redis://user:hunter2@host:6379/x")
	file := filepath.Join(t.TempDir(), "parlor.yaml")
	settings := "admin-key: short\nroom_shards: 3\ntrusted-proxies: [10.0.0.0/8, nonsense]\n"
	testkit.Check(t, os.WriteFile(file, []byte(settings), 0o600))
	status, out, stderr := command(t, "serve", "--config", file, "--log", "loud")
	if status != config.ExitStatus || out != "" {
		t.Errorf("exits %d and prints %q", status, out)
	}
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for i, want := range []string{
		"PARLOR_REDIS_URL (environment): ", "PARLOR_ADMIN_KEY (" + file + "): has 5 bytes",
		"PARLOR_ROOM_SHARDS (environment): ", `--log (flag): "loud"`,
		"PARLOR_TRUSTED_PROXIES (" + file + "): ", "room_shards (" + file + "): is not a setting; correct",
		"PARLOR_LISTNE (environment): is not a setting; correct", "PARLOR_SIGNING_KEY: is not set",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d should start with %q:\n%s", i, want, stderr)
		}
	}
	if len(lines) != 8 || strings.Contains(stderr, "hunter2") {
		t.Errorf("got:\n%s", stderr)
	}
}

func TestAnUnknownFlagExits78(t *testing.T) {
	if status, _, stderr := command(t, "serve", "--listne", ":80"); status != config.ExitStatus ||
		!strings.Contains(stderr, "--listne") {
		t.Errorf("exits %d: %s", status, stderr)
	}
}

func TestASecretAsAFlagExits78AndNamesItsVariable(t *testing.T) {
	for _, c := range []string{"serve", "dev"} {
		status, _, stderr := command(t, c, "--admin-key="+testAdminKey)
		if status != config.ExitStatus || strings.Contains(stderr, testAdminKey) ||
			!strings.Contains(stderr, "--admin-key (flag): ") || !strings.Contains(stderr, "PARLOR_ADMIN_KEY_FILE") {
			t.Errorf("%s exits %d: %s", c, status, stderr)
		}
		if help := must(t, c, "--help"); strings.Contains(help, "--admin-key") || strings.Contains(help, "--signing-key") {
			t.Errorf("the help of %s has flags for keys:\n%s", c, help)
		}
	}
}

func TestServeRefusesKeysThatCanBeGuessed(t *testing.T) {
	for name, keys := range map[string][2]string{
		"repeated":   {strings.Repeat("a", 32), testSigningKey},
		"copied":     {"changeme-changeme-changeme-changeme", testSigningKey},
		"one":        {testAdminKey, testAdminKey},
		"made by me": {config.DevKeyPrefix + testAdminKey, testSigningKey},
	} {
		setRequired(t, "redis://127.0.0.1:1")
		t.Setenv("PARLOR_ADMIN_KEY", keys[0])
		t.Setenv("PARLOR_SIGNING_KEY", keys[1])
		status, _, stderr := command(t, "serve")
		if status != config.ExitStatus || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "PARLOR_ADMIN_KEY") {
			t.Errorf("%s: exits %d: %s", name, status, stderr)
		}
	}
}

func TestConfigCommands(t *testing.T) {
	setRequired(t, "redis://127.0.0.1:1")
	if out := must(t, "config", "check"); !strings.Contains(out, "valid") {
		t.Errorf("check: %q", out)
	}
	out := must(t, "config", "show", "--log-level", "warn")
	if strings.Contains(out, testAdminKey) || strings.Contains(out, testSigningKey) {
		t.Error("show prints a secret")
	}
	for _, want := range []string{
		`PARLOR_ADMIN_KEY +\[redacted\] +environment`, `PARLOR_LOG_LEVEL +warn +flag`, `PARLOR_DURABILITY +disk +default`,
		`durability that holds now: not known`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("show has no %q:\n%s", want, out)
		}
	}
	if out := must(t, "config", "env"); out != config.ExampleEnv() {
		t.Errorf("env: %s", out)
	}
	if out := must(t, "config", "env", "--markdown"); out != config.ReferenceMarkdown() {
		t.Errorf("env --markdown: %s", out)
	}
	t.Setenv("PARLOR_ROOM_SHARDS", "x")
	if status, _, _ := command(t, "config", "check"); status != config.ExitStatus {
		t.Errorf("check of a wrong setting exits %d", status)
	}
}

func TestConfigShowsTheDurabilityThatHoldsNow(t *testing.T) {
	master := redistest.StartForTest(t, "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
	setRequired(t, "redis://"+master.Addr)
	want := func(mode, promise string) {
		t.Helper()
		t.Setenv("PARLOR_DURABILITY", mode)
		out := must(t, "config", "show")
		if !strings.HasSuffix(out, "\ndurability that holds now: "+promise+"\n") {
			t.Errorf("with %s and want %q:\n%s", mode, promise, out)
		}
	}
	want("disk", "disk")
	want("replica", "disk, less than replica")
	redistest.StartReplica(t, master.Addr)
	want("replica", "replica")
	testkit.Check(t, redistest.Dial(t, master).ConfigSet(t.Context(), "appendonly", "no").Err())
	want("disk", "memory, less than disk")
}

func TestVersionPrintsTheBuild(t *testing.T) {
	want := regexp.MustCompile(`^parlor \S+ commit \S+ go1\.\S+ linux/\w+ layouts \d+-\d+\n$`)
	if out := must(t, "version"); !want.MatchString(out) {
		t.Errorf("version: %q", out)
	}
}

func TestServeRejectsAStoreThatCouldLoseMoney(t *testing.T) {
	setRequired(t, redistest.StartForTest(t, "--maxmemory-policy", "allkeys-lru").URL())
	status, _, stderr := command(t, "serve")
	if status != config.ExitStatus || !strings.Contains(stderr, "set appendonly yes") ||
		!strings.Contains(stderr, "set maxmemory-policy noeviction") {
		t.Errorf("exits %d:\n%s", status, stderr)
	}
}

func TestServeListensWithoutAStoreAndServesWhenItAppears(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes")
	store.Kill()
	n := nodetest.StartWithoutStore(t, store.URL())
	if got := get(t, n.URL+"/healthz"); got != http.StatusOK {
		t.Errorf("/healthz returned %d", got)
	}
	if got := get(t, n.URL+"/balancez"); got != http.StatusNotFound {
		t.Errorf("/balancez returned %d", got)
	}
	for _, path := range []string{"/readyz", "/api/v1/me", "/api/v1/admin/games"} {
		r := n.Must(t, http.StatusServiceUnavailable, http.MethodGet, path, nodetest.AdminKey, nil)
		if r.Code() != "store_unavailable" {
			t.Errorf("%s returned %s", path, r)
		}
	}
	testkit.Check(t, store.Restart())
	n.WaitReady(http.StatusOK)
	n.Must(t, http.StatusOK, http.MethodGet, "/api/v1/admin/games", nodetest.AdminKey, nil)
}

func TestServeEndsWhenTheStoreThatAppearsCouldLoseMoney(t *testing.T) {
	store := redistest.StartForTest(t)
	store.Kill()
	n := nodetest.StartWithoutStore(t, store.URL())
	testkit.Check(t, store.Restart())
	if status := n.Wait(); status != config.ExitStatus || !strings.Contains(n.Log(), "set appendonly yes") {
		t.Errorf("exits %d:\n%s", status, n.Log())
	}
}

func TestAStoreThatHangsIsNoticedAndHoldsNoRequest(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes")
	t.Setenv("PARLOR_SIGNING_KEY", nodetest.SigningKey)
	must(t, "seed", "--redis-url", store.URL())
	ada := strings.TrimSpace(must(t, "token", "--redis-url", store.URL(), "--game", "1", "--user", "1"))
	n := nodetest.Start(t, store.URL())
	room := n.Must(t, http.StatusCreated, http.MethodPost, "/api/v1/game-session/create", ada,
		map[string]any{"maxPlayers": 2}).Body["roomId"].(string)
	store.Pause()
	defer store.Resume()
	calls := []struct {
		method, path, bearer string
		body                 any
	}{
		{"POST", "/api/v1/game-session/create", ada, map[string]any{"maxPlayers": 2}},
		{"POST", "/api/v1/game-session/leave", ada, map[string]any{"roomId": room}},
		{"POST", "/api/v1/friends/2", ada, nil},
		{"POST", "/api/v1/auth/guest", "", map[string]any{"gameId": 1}},
		{"POST", "/api/v1/auth/refresh", "", map[string]any{"refreshToken": "x"}},
		{"GET", "/api/v1/game-session/get?roomId=" + room, ada, nil},
		{"GET", "/api/v1/game-session/list", ada, nil},
		{"GET", "/api/v1/user-balance/token-balances", ada, nil},
		{"GET", "/api/v1/user-balance/ledger?tokenId=GOLD", ada, nil},
		{"GET", "/api/v1/me", ada, nil},
		{"GET", "/api/v1/friends", ada, nil},
		{"GET", "/api/v1/admin/games", nodetest.AdminKey, nil},
		{"GET", "/api/v1/admin/audit", nodetest.AdminKey, nil},
	}
	// All at once, and once more when the node has found the store silent for a while.
	for range 2 {
		var round sync.WaitGroup
		for _, call := range calls {
			round.Go(func() {
				began := time.Now()
				r, err := n.Do(t.Context(), call.method, call.path, call.bearer, call.body, "Idempotency-Key", "hangs-"+call.path)
				if took := time.Since(began); err != nil || took > 3500*time.Millisecond ||
					r.Status != http.StatusServiceUnavailable && r.Code() != "unauthenticated" {
					t.Errorf("%s %s: %v %s after %v", call.method, call.path, err, r, took)
				} else {
					t.Logf("%s %s: %d after %v", call.method, call.path, r.Status, took)
				}
			})
		}
		round.Wait()
	}
	n.WaitReady(http.StatusServiceUnavailable)
	if got := get(t, n.URL+"/balancez"); got != http.StatusNotFound {
		t.Errorf("/balancez returned %d", got)
	}
	store.Resume()
	n.WaitReady(http.StatusOK)
	n.Must(t, http.StatusOK, http.MethodGet, "/api/v1/me", ada, nil)
}

func TestANodeServesWhatIsLeftOfACluster(t *testing.T) {
	t.Parallel()
	url, members, err := redistest.StartCluster("--appendonly", "yes", "--cluster-require-full-coverage", "no")
	for _, m := range members {
		t.Cleanup(m.Remove)
	}
	testkit.Check(t, err)
	n := nodetest.Start(t, url)
	lost := func() int {
		r, err := n.Do(t.Context(), http.MethodGet, "/readyz", "", nil)
		if err != nil || r.Status != http.StatusOK {
			t.Fatalf("/readyz: %v %s", err, r)
		}
		return strings.Count(string(r.Raw), `"ok":false`)
	}
	if got := lost(); got != 0 {
		t.Fatalf("%d checks are not ok", got)
	}
	for range 8 { // spread over the masters
		n.Must(t, http.StatusCreated, http.MethodPost, "/api/v1/admin/games", nodetest.AdminKey, map[string]any{"name": "X"})
	}
	members[0].Kill()
	redistest.Eventually(t, "one master is lost", func() bool { return lost() == 1 })
	served := map[int]int{}
	for id := range 8 {
		r := testkit.Must(
			n.Do(t.Context(), http.MethodGet, fmt.Sprintf("/api/v1/admin/games/%d", id+1), nodetest.AdminKey, nil),
		)(t)
		served[r.Status]++
	}
	if served[http.StatusOK] == 0 || served[http.StatusServiceUnavailable] == 0 || len(served) != 2 {
		t.Errorf("the games return %v", served)
	}
	testkit.Check(t, members[0].Restart())
	redistest.Eventually(t, "it is back", func() bool { return lost() == 0 })
}

func TestANodeThatStartsWithoutOneMasterServesWhenThatIsBack(t *testing.T) {
	t.Parallel()
	url, members, err := redistest.StartCluster("--appendonly", "yes", "--cluster-require-full-coverage", "no")
	for _, m := range members {
		t.Cleanup(m.Remove)
	}
	testkit.Check(t, err)
	members[0].Kill()
	n := nodetest.StartWithoutStore(t, url)
	if got := get(t, n.URL+"/healthz"); got != http.StatusOK {
		t.Errorf("/healthz returned %d", got)
	}
	redistest.Eventually(t, "the node tries", func() bool { return strings.Contains(n.Log(), "waiting for the store") })
	r := n.Must(t, http.StatusServiceUnavailable, http.MethodGet, "/readyz", "", nil)
	if r.Code() != "store_unavailable" || !strings.Contains(string(r.Raw), `"name":"store","ok":false`) {
		t.Errorf("/readyz returned %s", r)
	}
	testkit.Check(t, members[0].Restart())
	n.WaitReady(http.StatusOK)
	redistest.Eventually(t, "a game is made", func() bool {
		r, err := n.Do(t.Context(), http.MethodPost, "/api/v1/admin/games", nodetest.AdminKey, map[string]any{"name": "X"})
		return err == nil && r.Status == http.StatusCreated
	})
}

func TestServeReportsAnAddressInUse(t *testing.T) {
	taken := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = taken.Close() }()
	setRequired(t, redistest.StartForTest(t, "--appendonly", "yes", "--maxmemory", "1gb").URL())
	status, _, stderr := command(t, "serve", "--listen", taken.Addr().String())
	if status != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "address already in use") {
		t.Errorf("exits %d:\n%s", status, stderr)
	}
}

func TestTwoNodesOfOneMachineNeedNoInternalAddress(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes")
	unset := "PARLOR_INTERNAL_LISTEN="
	first, second := nodetest.Start(t, store.URL(), unset), nodetest.Start(t, store.URL(), unset)
	if !strings.Contains(first.Log()+second.Log(), "the internal address is taken") {
		t.Errorf("both have the default address:\n%s%s", first.Log(), second.Log())
	}
}

func TestANodeSurvivesItsStoreAndDrains(t *testing.T) {
	t.Parallel()
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	n := nodetest.Start(t, store.URL(), "PARLOR_DRAIN_DELAY=1s")
	listen := strings.TrimPrefix(n.URL, "http://")
	for _, url := range []string{n.URL + "/healthz", n.InternalURL + "/metrics"} {
		if got := get(t, url); got != http.StatusOK {
			t.Errorf("%s returned %d", url, got)
		}
	}
	must(t, "healthcheck", "--listen", listen)

	store.Kill()
	n.WaitReady(http.StatusServiceUnavailable)
	if got := get(t, n.URL+"/healthz"); got != http.StatusOK {
		t.Errorf("without a store /healthz returned %d", got)
	}
	if status, _, stderr := command(t, "healthcheck", "--listen", listen); status != 1 ||
		!strings.Contains(stderr, "not ready") {
		t.Errorf("healthcheck without a store exits %d: %s", status, stderr)
	}
	testkit.Check(t, store.Restart())
	n.WaitReady(http.StatusOK)

	exited := make(chan int)
	go func() { exited <- n.Terminate() }()
	n.WaitReady(http.StatusServiceUnavailable)
	if got := get(t, n.URL+"/healthz"); got != http.StatusOK {
		t.Errorf("a draining node returned %d on /healthz", got)
	}
	if status := <-exited; status != 0 {
		t.Errorf("after SIGTERM the node exits with %d:\n%s", status, n.Log())
	}
	if status, _, _ := command(t, "healthcheck", "--listen", listen); status != 1 {
		t.Errorf("healthcheck without a node exits %d", status)
	}
}

func get(t *testing.T, url string) int {
	t.Helper()
	response := testkit.Must(http.Get(url))(t)
	_ = response.Body.Close()
	return response.StatusCode
}

// devProcess is a running "parlor dev".
type devProcess struct {
	*exec.Cmd
	stderr bytes.Buffer
	lines  []string // printed at its start
	more   *bufio.Scanner
}

// startDev starts "parlor dev" with nothing in its environment but PATH and env, and reads what it
// prints.
func startDev(t *testing.T, env []string, args ...string) *devProcess {
	t.Helper()
	d := &devProcess{Cmd: exec.Command(nodetest.Binary(t), append([]string{"dev"}, args...)...)}
	d.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	redistest.EndWithParent(d.Cmd)
	d.Stderr = &d.stderr
	out := testkit.Must(d.StdoutPipe())(t)
	testkit.Check(t, d.Start())
	t.Cleanup(func() { _ = d.Process.Kill() })
	d.more = bufio.NewScanner(out)
	for d.more.Scan() {
		d.lines = append(d.lines, d.more.Text())
		if strings.HasPrefix(d.more.Text(), "# Events") {
			return d
		}
	}
	t.Fatalf("parlor dev ended: %s", d.stderr.String())
	return nil
}

// stop ends the process in good order.
func (d *devProcess) stop(t *testing.T) {
	t.Helper()
	_ = d.Process.Signal(syscall.SIGTERM)
	for d.more.Scan() { // Wait closes the pipe, so it must be read to its end before
	}
	if err := d.Wait(); err != nil || strings.Contains(d.stderr.String(), "DATA RACE") {
		t.Errorf("SIGTERM: %v\n%s", err, d.stderr.String())
	}
}

func TestDevPrintsCommandsThatWorkWhenPasted(t *testing.T) {
	dev := startDev(t, nil, "--listen", "127.0.0.1:0")
	all := strings.Join(dev.lines, "\n")
	if len(dev.lines) > 16 || !strings.Contains(all, "LOST") || strings.Contains(all, "\x1b") {
		t.Fatalf("printed %d lines:\n%s\n%s", len(dev.lines), all, dev.stderr.String())
	}
	exports, curls := "", 0
	for _, line := range dev.lines {
		switch {
		case strings.HasPrefix(line, "#"):
			if at := strings.Index(line, "http://"); at >= 0 && !strings.Contains(line, "<script") {
				if got := get(t, line[at:]); got != http.StatusOK {
					t.Errorf("%s: %d", line, got)
				}
			}
		case strings.HasPrefix(line, "export "):
			exports += line + "\n"
		default:
			curls++
			if len(line) > 140 || strings.Contains(line, "Bearer ey") {
				t.Errorf("a long line: %s", line)
			}
			response, err := exec.Command("sh", "-ec", exports+line).Output()
			var body map[string]any
			if err == nil {
				err = wire.Unmarshal(response, &body)
			}
			if err != nil || body["code"] != nil && body["status"] != "CREATED" {
				t.Errorf("%s\nreturns %v %s", line, err, response)
			}
			if strings.Contains(line, "token-balances") && !strings.Contains(string(response), `"volume":100,`) {
				t.Errorf("the seeded balance is missing: %s", response)
			}
			if strings.Contains(line, "leaderboards") && !strings.Contains(string(response), `"username":"ada"`) {
				t.Errorf("the seeded scores are missing: %s", response)
			}
			if strings.Contains(line, "tournaments") && !strings.Contains(string(response), `"status":"REGISTRATION"`) {
				t.Errorf("the seeded tournament is not open: %s", response)
			}
		}
	}
	if curls != 5 {
		t.Errorf("%d curl lines:\n%s", curls, all)
	}
	if !strings.Contains(all, "/console#link=") {
		t.Errorf("no link to the console:\n%s", all)
	}

	// A line for each event, for people.
	play := exports + `
ask() { curl -sf "$URL$1" -H "Authorization: Bearer $2" -H 'Content-Type: application/json' -d "$3"; }
ROOM=$(ask /api/v1/game-session/create $BOB_TOKEN '{"entryTokenId":1,"roomEntry":2.5,"maxPlayers":2,"autoStart":true}' |
  sed 's/.*"roomId":"\([^"]*\)".*/\1/')
ask /api/v1/game-session/join $CLEO_TOKEN "{\"roomId\":\"$ROOM\"}"
curl -sf "$URL/api/v1/game-session/finish" -H "Authorization: Bearer $SERVER_KEY" -H 'Idempotency-Key: a' \
  -H 'Content-Type: application/json' \
  -d "{\"roomId\":\"$ROOM\",\"results\":[{\"userId\":3,\"place\":1},{\"userId\":2,\"place\":2}]}"
curl -sf -X POST "$URL/api/v1/user-assets/add/game-asset/1" -H "Authorization: Bearer $CLEO_TOKEN" \
  -H 'Idempotency-Key: b'
`
	if out, err := exec.Command("sh", "-ec", play).CombinedOutput(); err != nil {
		t.Fatalf("play: %v %s", err, out)
	}
	for _, want := range []string{
		`ada opened room \w+: 2 seats, entry 2.5 GOLD`, `bob opened room \w+: 2 seats, entry 2.5 GOLD`,
		`cleo joined room \w+: the pot is 5 GOLD`, `room \w+ started`, `room \w+ finished: cleo won 5 GOLD`,
		`cleo bought 1 × Wooden sword for 2.5 GOLD`,
	} {
		if !dev.more.Scan() || !regexp.MustCompile(`^\d\d:\d\d:\d\d  `+want+`$`).MatchString(dev.more.Text()) {
			t.Fatalf("the next line is %q, want %q\n%s", dev.more.Text(), want, dev.stderr.String())
		}
	}
	dev.stop(t)
}

func TestDevTakesTheNextFreePortAndOpensTheDemo(t *testing.T) {
	opened := filepath.Join(t.TempDir(), "opened")
	browser := filepath.Join(t.TempDir(), "browser")
	testkit.Check(t, os.WriteFile(browser, []byte("#!/bin/sh\necho $1 >> "+opened+"\n"), 0o755))
	first := startDev(t, nil)
	second := startDev(t, []string{"BROWSER=" + browser}, "--open")
	urls := [2]string{}
	for i, d := range []*devProcess{first, second} {
		urls[i] = regexp.MustCompile(`http://127\.0\.0\.1:80\d\d/play`).FindString(strings.Join(d.lines, "\n"))
		if urls[i] == "" {
			t.Fatalf("printed %s", d.lines)
		}
	}
	if urls[0] == urls[1] {
		t.Errorf("both are at %s", urls[0])
	}
	redistest.Eventually(t, "the browser shows the demo", func() bool {
		text, _ := os.ReadFile(opened)
		return string(text) == urls[1]+"\n"
	})
	first.stop(t)
	second.stop(t)
	taken := strings.TrimSuffix(strings.TrimPrefix(urls[0], "http://"), "/play")
	listener := testkit.Must(net.Listen("tcp", taken))(t)
	defer func() { _ = listener.Close() }()
	if status, _, stderr := command(t, "dev", "--listen", taken); status != 1 || !strings.Contains(stderr, "in use") {
		t.Errorf("an address that was asked for is replaced: %d %s", status, stderr)
	}
}

func TestColorsAreForTerminalsThatWantThem(t *testing.T) {
	device := testkit.Must(os.Open(os.DevNull))(t) // a device, like a terminal
	defer func() { _ = device.Close() }()
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	if !hasColors(device) || hasColors(io.Discard) {
		t.Error("a terminal has no colours, or another output has")
	}
	t.Setenv("NO_COLOR", "1")
	if hasColors(device) || styled(false, bold, "x") != "x" {
		t.Error("NO_COLOR is ignored")
	}
}

func TestInitWritesSettingsThatServeAcceptsAndOverwritesNothing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "my-game")
	must(t, "init", folder)
	env := testkit.Must(os.ReadFile(filepath.Join(folder, "parlor.env")))(t)
	for _, name := range []string{"parlor.env", "compose.env", "redis.conf"} {
		if info := testkit.Must(os.Stat(filepath.Join(folder, name)))(t); info.Mode().Perm() != 0o600 {
			t.Errorf("others may read the secrets of %s: %v", name, info.Mode())
		}
	}
	for line := range strings.Lines(string(env)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(name, "PARLOR_") {
			t.Setenv(name, value)
		}
	}
	if out := must(t, "config", "check"); !strings.Contains(out, "valid") {
		t.Errorf("check: %s", out)
	}
	compose, err := os.ReadFile(filepath.Join(folder, "compose.yaml"))
	var parsed struct{ Services map[string]any }
	if err != nil || yaml.Unmarshal(compose, &parsed) != nil || len(parsed.Services) != 2 {
		t.Errorf("compose.yaml has the services %v: %v", parsed.Services, err)
	}
	manifest := testkit.Must(os.ReadFile(filepath.Join(folder, "game", "package.json")))(t)
	if !strings.Contains(string(manifest), `"name": "my-game"`) {
		t.Errorf("package.json is %s", manifest)
	}
	program := testkit.Must(os.Stat(filepath.Join(folder, "parlor")))(t)
	if own := testkit.Must(os.Executable())(t); testkit.Must(os.Stat(own))(t).Size() != program.Size() {
		t.Errorf("the image would have another program, of %d bytes", program.Size())
	}

	testkit.Check(t, os.Remove(filepath.Join(folder, "game", "index.html")))
	status, _, stderr := command(t, "init", folder)
	if status != 1 || !strings.Contains(stderr, "nothing was written") || !strings.Contains(stderr, "parlor.env") {
		t.Errorf("exits %d: %s", status, stderr)
	}
	if again, _ := os.ReadFile(filepath.Join(folder, "parlor.env")); !bytes.Equal(again, env) {
		t.Error("the secrets were overwritten")
	}
	if _, err := os.Stat(filepath.Join(folder, "game", "index.html")); err == nil {
		t.Error("a part was written")
	}
	for _, name := range []string{"parlor.env", "compose.env", "redis.conf", "compose.yaml", "Dockerfile"} {
		if text := testkit.Must(os.ReadFile(filepath.Join(folder, name)))(t); bytes.ContainsAny(text, "{}") {
			t.Errorf("a value is missing in %s:\n%s", name, text)
		}
	}
	for name, want := range map[string][]string{
		".gitignore": {"/*.env\n", "/redis.conf\n", "/data/\n", "/parlor\n"}, ".dockerignore": {"*\n!parlor\n"},
		"game/.gitignore": {"node_modules/\n"}, "game/.env": {"VITE_PARLOR_URL=http://localhost:8080\n"},
	} {
		text := testkit.Must(os.ReadFile(filepath.Join(folder, name)))(t)
		for _, line := range want {
			if !bytes.Contains(text, []byte(line)) {
				t.Errorf("%s lacks %q", name, line)
			}
		}
	}
	data := testkit.Must(os.Stat(filepath.Join(folder, "data")))(t)
	if data.Mode().Perm() != 0o700 {
		t.Errorf("others may read the store: %v", data.Mode())
	}
	spaced := filepath.Join(t.TempDir(), "it's mine")
	steps := must(t, "init", spaced, "--origins", "https://a.example, https://b.example")
	if want := "cd '" + strings.ReplaceAll(spaced, "'", `'\''`) + "'\n"; !strings.Contains(steps, want) {
		t.Errorf("the steps lack %s:\n%s", want, steps)
	}
	settings := testkit.Must(os.ReadFile(filepath.Join(spaced, "parlor.env")))(t) // a shell reads it too
	if !bytes.Contains(settings, []byte("\nPARLOR_FIRST_GAME_ORIGINS=https://a.example,https://b.example\n")) {
		t.Errorf("the settings are %s", settings)
	}
	for _, template := range []string{"game", "svelte", "../dist"} {
		status, _, stderr = command(t, "init", filepath.Join(folder, "other"), "--template", template)
		if status != 1 || !strings.Contains(stderr, "vanilla, react or phaser") {
			t.Errorf("template %s: %d %s", template, status, stderr)
		}
	}
}

func TestInitWritesAServerThatHasTheKeyOfTheGame(t *testing.T) {
	for language, commands := range serverCommands {
		folder := filepath.Join(t.TempDir(), "my-game")
		steps := must(t, "init", folder, "--server", language)
		if !strings.Contains(steps, "/server\nset -a; . ../server.env; set +a\n"+strings.Join(commands, "\n")+"\n") {
			t.Errorf("%s: the steps are\n%s", language, steps)
		}
		read := func(name string) string { return string(testkit.Must(os.ReadFile(filepath.Join(folder, name)))(t)) }
		_, key, _ := strings.Cut(read("parlor.env"), "\nPARLOR_FIRST_GAME_KEY=")
		key, _, _ = strings.Cut(key, "\n")
		if env := read("server.env"); key == "" || !strings.Contains(env, "\nSERVER_KEY="+key+"\n") {
			t.Errorf("%s: the server has another key than %s", language, key)
		}
		var parsed struct {
			Services map[string]struct{ Build, EnvFile any }
		}
		testkit.Check(t, yaml.Unmarshal([]byte(read("compose.yaml")), &parsed))
		if len(parsed.Services) != 3 || parsed.Services["server"].Build != "server" {
			t.Errorf("%s: compose.yaml has the services %v", language, parsed.Services)
		}
		if rules := read("game/src/rules.ts"); !strings.Contains(rules, `settlement = "server"`) {
			t.Errorf("%s: the game has the rules\n%s", language, rules)
		}
		read("server/README.md")
	}
}

func TestInitRefusesWhatTheNodeWouldRefuse(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	testkit.Check(t, os.WriteFile(file, nil, 0o600))
	for message, args := range map[string][]string{
		"localhost:5173 must look like": {"--origins", "http://localhost:4173,localhost:5173"},
		"--port and --redis-port":       {"--port", "99999"},
		"both have port 7000":           {"--port", "7000", "--redis-port", "7000"},
		"is a file":                     {file},
		"there is no server in basic":   {"--server", "basic"},
	} {
		if len(args) > 1 {
			args = append(args, filepath.Join(folder, "other"))
		}
		status, _, stderr := command(t, append([]string{"init"}, args...)...)
		if status != 1 || !strings.Contains(stderr, message) {
			t.Errorf("%v: exits %d: %s", args, status, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "other")); err == nil {
		t.Error("something was written")
	}
}

func TestTheStepsOfInitCanBePastedWhateverTheFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	out := must(t, "init", "Ada's game")
	for _, line := range []string{`cd 'Ada'\''s game'`, `cd 'Ada'\''s game/game'`} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("%s is missing in\n%s", line, out)
		}
	}
	if out := must(t, "init"); strings.Contains(out, "cd .\n") || !strings.Contains(out, "cd game\n") {
		t.Errorf("in this folder: %s", out)
	}
}

// stopAfter is an output that stops the node as soon as it has printed a text.
type stopAfter struct {
	bytes.Buffer
	text string
	stop context.CancelFunc
	// wrote is called at each write, unless it is nil.
	wrote func()
}

func (s *stopAfter) Write(b []byte) (int, error) {
	if s.wrote != nil {
		s.wrote()
	}
	if bytes.Contains(b, []byte(s.text)) {
		s.stop()
	}
	return s.Buffer.Write(b)
}

func TestANodeStopsAllItsGoroutines(t *testing.T) {
	setRequired(t, redistest.StartForTest(t, "--appendonly", "yes").URL())
	before := goleak.IgnoreCurrent()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := &stopAfter{text: `"msg":"ready"`, stop: stop}
	if status := run(ctx, []string{"serve", "--drain-delay", "0s"}, io.Discard, log); status != 0 {
		t.Errorf("exits %d", status)
	}
	if !strings.HasSuffix(log.String(), "\"msg\":\"stopped\"}\n") {
		t.Errorf("the log ends with:\n%s", log)
	}
	goleak.VerifyNone(t, before)
}

func TestDevOnARealStoreFindsWhatItSeeded(t *testing.T) {
	store := redistest.StartForTest(t).URL()
	var printed [2]string
	for i := range printed {
		ctx, stop := context.WithCancel(t.Context())
		out := &stopAfter{text: "# Events", stop: stop}
		args := []string{"dev", "--redis-url", store, "--listen", "127.0.0.1:0", "--log-level", "error"}
		if status := run(ctx, args, out, io.Discard); status != 0 {
			t.Fatalf("exits %d", status)
		}
		stop()
		printed[i] = out.String()
	}
	keyLine := regexp.MustCompile(`SERVER_KEY=\S+`)
	if strings.Contains(printed[0], "LOST") || !keyLine.MatchString(printed[0]) || !keyLine.MatchString(printed[1]) ||
		keyLine.FindString(printed[0]) == keyLine.FindString(printed[1]) || // the first one was shown once
		!strings.Contains(printed[1], "# player 3") ||
		strings.Contains(printed[1], "# player 4") {
		t.Errorf("first:\n%s\nthen:\n%s", printed[0], printed[1])
	}
}

func TestDevRevokesTheServerKeysOfProcessesThatWereKilled(t *testing.T) {
	t.Parallel()
	store := redistest.StartForTest(t).URL()
	home := t.TempDir()
	start := func() *devProcess {
		return startDev(t, []string{"HOME=" + home}, "--redis-url", store, "--listen", "127.0.0.1:0",
			"--internal-listen", "127.0.0.1:0", "--log-level", "error")
	}
	serverKey := func(d *devProcess) string {
		return regexp.MustCompile(`SERVER_KEY=(\S+)`).FindStringSubmatch(strings.Join(d.lines, "\n"))[1]
	}
	ask := func(d *devProcess, key string) int {
		url := regexp.MustCompile(`URL=(\S+)`).FindStringSubmatch(strings.Join(d.lines, "\n"))[1]
		request := testkit.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/admin/games/1", nil))(t)
		request.Header.Set("Authorization", "Bearer "+key)
		response := testkit.Must(http.DefaultClient.Do(request))(t)
		_ = response.Body.Close()
		return response.StatusCode
	}
	start().stop(t) // its key is the game's first, and stays
	living := start()
	var last string
	for range 9 {
		killed := start()
		last = serverKey(killed)
		_ = killed.Process.Kill()
		_ = killed.Wait()
	}
	after := start()
	for _, c := range []struct {
		of   string
		key  string
		want int
	}{
		{"a process that lives", serverKey(living), http.StatusOK},
		{"the newest process", serverKey(after), http.StatusOK},
		{"a process that was killed", last, http.StatusUnauthorized},
	} {
		redistest.Eventually(t, fmt.Sprintf("the key of %s: %d", c.of, c.want), func() bool {
			return ask(living, c.key) == c.want
		})
	}
	after.stop(t)
	living.stop(t)
	left, err := filepath.Glob(filepath.Join(home, ".cache", "parlor", "dev-server-keys", "*", "key-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("files of ended processes: %v, %v", left, err)
	}
}

func TestDevWarnsWhereOthersReachIt(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:8080": false, "[::1]:0": false, "localhost:8080": false, "127.3.2.1:1": false,
		"0.0.0.0:8080": true, ":8080": true, "[::]:8080": true, "192.168.1.5:8080": true, "laptop.local:8080": true,
	} {
		if got := isOpenToOthers(listen); got != want {
			t.Errorf("%s is open to others: %v", listen, got)
		}
	}
	dev := startDev(t, nil, "--listen", "0.0.0.0:0", "--internal-listen", "127.0.0.1:0")
	if !strings.Contains(strings.Join(dev.lines, "\n"), "# WARNING: everybody who reaches 0.0.0.0:0 can play") {
		t.Errorf("dev prints %v", dev.lines)
	}
	dev.stop(t)
}

func TestTheConsoleLinkOfDevLastsADay(t *testing.T) {
	server := redistest.StartForTest(t)
	dev := startDev(t, nil, "--redis-url", server.URL(), "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0")
	link := regexp.MustCompile(`#link=(\S+)`).FindStringSubmatch(strings.Join(dev.lines, "\n"))[1]
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	defer func() { _ = db.Close() }()
	ttl := db.Client.PTTL(t.Context(), keys.ConsoleLink(secret.Digest(link))).Val()
	if ttl > devTokenTTL || ttl < devTokenTTL-time.Minute {
		t.Errorf("the link is valid for %v", ttl)
	}
	dev.stop(t)
}

func TestATokenIsValidForItsPlayer(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes").URL()
	t.Setenv("PARLOR_SIGNING_KEY", nodetest.SigningKey)
	must(t, "seed", "--redis-url", store)
	token := strings.TrimSpace(must(t, "token", "--redis-url", store, "--game", "1", "--user", "2"))
	n := nodetest.Start(t, store)
	if a := n.Must(t, http.StatusOK, http.MethodGet, "/api/v1/me", token, nil); !strings.Contains(string(a.Raw), `"bob"`) {
		t.Errorf("GET /me returned %s", a)
	}
	status, _, stderr := command(t, "token", "--redis-url", store, "--game", "2", "--user", "2")
	if status != 1 || !strings.Contains(stderr, "user_not_found") {
		t.Errorf("a player of another game: exits %d: %s", status, stderr)
	}
}

func TestConsolePrintsALinkOfTheInternalListener(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes").URL()
	n := nodetest.Start(t, store)
	n.WaitReady(http.StatusOK)
	t.Setenv("PARLOR_ADMIN_KEY", nodetest.AdminKey)
	t.Setenv("PARLOR_INTERNAL_LISTEN", strings.TrimPrefix(n.InternalURL, "http://"))
	link := strings.TrimSpace(must(t, "console"))
	page, secret, ok := strings.Cut(link, "#link=")
	if !ok || page != n.InternalURL+"/console" || len(secret) < 40 {
		t.Fatalf("printed %q", link)
	}
	if again := strings.TrimSpace(must(t, "console", "--url", n.InternalURL+"/")); again == link {
		t.Error("two links are the same")
	}
	response := testkit.Must(http.Get(page))(t)
	_ = response.Body.Close()
	policy := response.Header.Get("Content-Security-Policy")
	if response.StatusCode != http.StatusOK || !strings.Contains(policy, "script-src 'self'") {
		t.Errorf("the console is %d with %v", response.StatusCode, response.Header)
	}
	n.Must(t, http.StatusNotFound, http.MethodGet, "/console", "", nil)

	t.Setenv("PARLOR_ADMIN_KEY", "another key, of which no node knows anything")
	if status, _, stderr := command(t, "console"); status != 1 || !strings.Contains(stderr, "401") {
		t.Errorf("with another key it exits %d: %s", status, stderr)
	}
	if status, _, stderr := command(t, "console", "--url", "http://127.0.0.1:1"); status != 1 ||
		!strings.Contains(stderr, "no node answers") {
		t.Errorf("without a node it exits %d: %s", status, stderr)
	}
}

func TestSeedingIsIdempotentAndTheAuditFindsMadeMoney(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes").URL()
	t.Setenv("PARLOR_SIGNING_KEY", testSigningKey)
	seed := func() string { return must(t, "seed", "--redis-url", store) }
	first, second := seed(), seed()
	key := regexp.MustCompile(`(?m)^server key.*\n`)
	if !key.MatchString(first) || key.ReplaceAllString(first, "") != second {
		t.Errorf("first:\n%s\nsecond:\n%s", first, second)
	}

	audit := func(args ...string) (int, string) {
		status, out, stderr := command(t, append([]string{"audit", "--redis-url", store}, args...)...)
		return status, out + stderr
	}
	if status, out := audit(); status != 0 || !regexp.MustCompile(`GOLD +300 +300 +0 +0 +0 +0`).MatchString(out) ||
		!strings.HasSuffix(out, "\nbalanced\n") {
		t.Errorf("exits %d:\n%s", status, out)
	}
	if status, out := audit("--deep"); status != 0 || !strings.Contains(out, "3 wallets") {
		t.Errorf("--deep exits %d:\n%s", status, out)
	}

	if status, out := audit("--game", "2"); status != 1 || !strings.Contains(out, "game_not_found") {
		t.Errorf("of a game that is not there it exits %d:\n%s", status, out)
	}

	db := testkit.Must(redisdb.Open(store))(t)
	defer func() { _ = db.Close() }()
	testkit.Check(t, db.Client.HIncrBy(t.Context(), keys.Totals(1), "wallets:GOLD", 1).Err())
	if status, out := audit(); status != 1 || !strings.HasSuffix(out, "\nNOT BALANCED\n") {
		t.Errorf("with money from nowhere it exits %d:\n%s", status, out)
	}
	for _, args := range [][]string{{"--json"}, {"--json", "--deep"}, {"--json", "--game", "1"}} {
		status, out := audit(args...)
		var report struct {
			Balanced bool `json:"balanced"`
			Tokens   []struct {
				TokenID string `json:"tokenId"`
			} `json:"tokens"`
		}
		if err := wire.Unmarshal([]byte(out), &report); err != nil || status != 1 || report.Balanced ||
			len(report.Tokens) != 2 {
			t.Errorf("%v exits %d: %v\n%s", args, status, err, out)
		}
	}
}

func TestToolsReportWhatTheyNeed(t *testing.T) {
	for _, c := range []string{
		"audit", "seed", "boards top weekly --game 1", "boards verify --game 1",
		"tournaments list --game 1", "tournaments cancel 1 --game 1 --reason x", "rooms parked",
	} {
		if status, _, stderr := command(t, strings.Fields(c)...); status != config.ExitStatus ||
			!strings.Contains(stderr, "PARLOR_REDIS_URL: is not set") {
			t.Errorf("%s exits %d: %s", c, status, stderr)
		}
	}
}
