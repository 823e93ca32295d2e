// Package install tests an installation as a whole: the secrets that deploy/make-secrets.sh makes,
// Redis with the files of deploy/redis, and nodes that connect as the user they get. Only paths,
// ports and names of machines are replaced.
package install

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Wrap(nodetest.Main)(m)) }

// testUser reads the whole store. It is the one line that the tests add to the users.
const testUser, testUserLine = "test", "user test on >test ~* &* +@all\n"

// store is Redis, started with the files of an installation.
type store struct {
	t         *testing.T
	secrets   string              // folder of the secrets
	servers   []*redistest.Server // that hold data
	primaries []*redistest.Server // those of servers that take writes
	sentinels []*redistest.Server
	url       string // of the user of the nodes
}

// makeSecrets runs make-secrets.sh, twice, and returns the folder.
func makeSecrets(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "secrets")
	before := map[string]string{}
	for range 2 { // the second time changes nothing
		if out, err := exec.Command("bash", "../../deploy/make-secrets.sh", folder).CombinedOutput(); err != nil {
			t.Fatalf("make-secrets.sh: %v\n%s", err, out)
		}
		made := map[string]string{}
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			made[file.Name()] = readFile(t, folder, file.Name())
		}
		if len(before) > 0 && !maps.Equal(made, before) {
			t.Error("the second run of make-secrets.sh changed what the first one had made")
		}
		before = made
	}
	writeFile(t, filepath.Join(folder, usersFile), readFile(t, folder, usersFile)+"\n"+testUserLine)
	return folder
}

const usersFile = "redis_users.acl"

func readFile(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// writeFile replaces the text of a file and not the file, which a container has as a mount.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// copySettings writes a file of settings into a new folder of a server, with the paths of this
// machine and further replacements: old, new, old, new ….
func (s *store) copySettings(text, name string, replacements ...string) string {
	s.t.Helper()
	dir, err := os.MkdirTemp("", "parlor-redis-") // short: it has a unix socket
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	paths := []string{"/run/secrets/", s.secrets + "/", "/etc/redis/", dir + "/", "dir /data", "dir " + dir}
	replace := strings.NewReplacer(append(paths, replacements...)...)
	writeFile(s.t, filepath.Join(dir, "redis.conf"), replace.Replace(readFile(s.t, "../../deploy/redis/redis.conf"))+"\n")
	file := filepath.Join(dir, name)
	writeFile(s.t, file, replace.Replace(text)+"\n")
	return file
}

// start starts a server that holds data, with a file of deploy/redis and lines after it.
func (s *store) start(name, lines string, args ...string) *redistest.Server {
	s.t.Helper()
	file := s.copySettings(readFile(s.t, "../../deploy/redis", name)+"\n"+lines, name)
	args = append(args, "--repl-diskless-sync-delay", "0") // waits for further replicas
	server, err := redistest.StartWithFile(file, args...)
	if err != nil {
		s.t.Fatalf("start Redis with %s: %v", name, err)
	}
	s.t.Cleanup(server.Remove)
	s.servers = append(s.servers, server)
	return server
}

// startSingle starts one server.
func startSingle(t *testing.T) *store {
	t.Helper()
	s := &store{t: t, secrets: makeSecrets(t)}
	server := s.start("redis.conf", "")
	s.primaries = s.servers
	s.url = strings.Replace(readFile(t, s.secrets, "redis_url"), "redis:6379", server.Addr, 1)
	return s
}

// startSentinels starts a primary, a replica and three Sentinels.
func startSentinels(t *testing.T) *store {
	t.Helper()
	s := &store{t: t, secrets: makeSecrets(t)}
	primary := s.start("redis.conf", "")
	s.primaries = slices.Clone(s.servers)
	_, port, _ := strings.Cut(primary.Addr, ":")
	s.start("redis.conf", "replicaof 127.0.0.1 "+port+"\n")
	s.url = readFile(t, s.secrets, "redis_sentinel_url")
	for i := range 3 {
		// A restart on a busy machine must not become a failover.
		file := s.copySettings(readFile(t, s.secrets, "redis_sentinel.conf"), "sentinel.conf",
			"redis-1 6379", "127.0.0.1 "+port, "down-after-milliseconds parlor 5000", "down-after-milliseconds parlor 60000")
		sentinel, err := redistest.StartSentinel(file)
		if err != nil {
			t.Fatalf("start a Sentinel: %v", err)
		}
		t.Cleanup(sentinel.Remove)
		s.sentinels = append(s.sentinels, sentinel)
		s.url = strings.Replace(s.url, fmt.Sprintf("sentinel-%d:26379", i+1), sentinel.Addr, 1)
	}
	for _, sentinel := range s.sentinels {
		asked := s.client(sentinel.Addr, "parlor", "redis_password")
		redistest.Eventually(t, "a Sentinel knows the two others and the replica", func() bool {
			others, err := asked.Do(t.Context(), "SENTINEL", "SENTINELS", "parlor").Slice()
			replicas, replicasErr := asked.Do(t.Context(), "SENTINEL", "REPLICAS", "parlor").Slice()
			return err == nil && replicasErr == nil && len(others) == 2 && len(replicas) == 1
		})
	}
	s.waitLoaded()
	return s
}

// startCluster starts three masters, which parlor-admin makes a Cluster.
func startCluster(t *testing.T) *store {
	t.Helper()
	s := &store{t: t, secrets: makeSecrets(t)}
	s.url = readFile(t, s.secrets, "redis_cluster_url")
	create := []string{"--cluster", "create"}
	for i := range 3 {
		server := s.start("cluster.conf", "", "--cluster-announce-hostname", "localhost")
		create = append(create, server.Addr)
		s.url = strings.Replace(s.url, fmt.Sprintf("redis-%d:6379", i+1), server.Addr, 1)
	}
	s.primaries = s.servers
	s.asAdmin(append(create, "--cluster-yes")...)
	s.waitLoaded()
	return s
}

// asAdmin runs redis-cli as parlor-admin.
func (s *store) asAdmin(args ...string) string {
	s.t.Helper()
	c := exec.Command("redis-cli", append([]string{"--user", "parlor-admin"}, args...)...)
	c.Env = append(os.Environ(), "REDISCLI_AUTH="+readFile(s.t, s.secrets, "redis_admin_password"))
	out, err := c.CombinedOutput()
	if err != nil {
		s.t.Fatalf("redis-cli %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// client returns a client of a server for a user whose password is a secret.
func (s *store) client(addr, user, passwordFile string) *redis.Client {
	return s.clientOf(&redis.Options{Addr: addr, Username: user, Password: readFile(s.t, s.secrets, passwordFile)})
}

// reader returns a client of a server that may do everything.
func (s *store) reader(server *redistest.Server) *redis.Client {
	return s.clientOf(&redis.Options{Addr: server.Addr, Username: testUser, Password: testUser})
}

func (s *store) clientOf(o *redis.Options) *redis.Client {
	o.MaxRetries = -1
	client := redis.NewClient(o)
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

// waitLoaded waits until every server has read its file, and is in step with the others.
func (s *store) waitLoaded() {
	s.t.Helper()
	for _, server := range s.servers {
		client := s.reader(server)
		redistest.Eventually(s.t, "a server of the store serves", func() bool {
			info, err := client.Info(s.t.Context()).Result()
			if err != nil || !strings.Contains(info, "\nloading:0") || strings.Contains(info, "\nmaster_link_status:down") {
				return false
			}
			if !strings.Contains(info, "\ncluster_enabled:1") {
				return true
			}
			state, err := client.ClusterInfo(s.t.Context()).Result()
			return err == nil && strings.Contains(state, "cluster_state:ok") && strings.Contains(state, "cluster_known_nodes:3")
		})
	}
}

// wantNothingRefused checks that no user of the store lacked a right.
func (s *store) wantNothingRefused() {
	s.t.Helper()
	for _, server := range s.servers {
		_, port, _ := strings.Cut(server.Addr, ":")
		if log := s.asAdmin("-p", port, "ACL", "LOG"); log != "" {
			s.t.Errorf("the store refused a user something:\n%s", log)
		}
	}
}

// key is what the store has under one key.
type key struct {
	kind     string // as TYPE replies
	value    string // the elements; those of a hash or a set sorted
	expireAt int64  // in ms since 1970, -1: never
}

// readKeys returns all keys of a server.
func (s *store) readKeys(server *redistest.Server) map[string]key {
	s.t.Helper()
	ctx, client := s.t.Context(), s.reader(server)
	names, err := client.Keys(ctx, "*").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	pipeline := client.Pipeline()
	kinds, ends, values := map[string]*redis.StatusCmd{}, map[string]*redis.DurationCmd{}, map[string]*redis.Cmd{}
	for _, name := range names {
		kinds[name], ends[name] = pipeline.Type(ctx, name), pipeline.PExpireTime(ctx, name)
	}
	_, _ = pipeline.Exec(ctx)
	for name, kind := range kinds {
		switch kind.Val() {
		case "string":
			values[name] = pipeline.Do(ctx, "GET", name)
		case "hash":
			values[name] = pipeline.Do(ctx, "HGETALL", name)
		case "list":
			values[name] = pipeline.Do(ctx, "LRANGE", name, 0, -1)
		case "set":
			values[name] = pipeline.Do(ctx, "SMEMBERS", name)
		case "zset":
			values[name] = pipeline.Do(ctx, "ZRANGE", name, 0, -1, "WITHSCORES")
		case "stream":
			values[name] = pipeline.Do(ctx, "XRANGE", name, "-", "+")
		}
	}
	_, _ = pipeline.Exec(ctx)
	all := map[string]key{}
	for name, value := range values {
		found, err := value.Result()
		if errors.Is(err, redis.Nil) {
			continue // its time was over meanwhile
		}
		if err != nil {
			s.t.Fatalf("read %s: %v", name, err)
		}
		kind := kinds[name].Val()
		all[name] = key{kind, textOf(kind, found), int64(ends[name].Val())}
	}
	return all
}

// textOf returns a value as text, the same for the same elements: hashes and sets have no order.
func textOf(kind string, value any) string {
	elements, ok := value.([]any)
	width := map[string]int{"hash": 2, "set": 1}[kind]
	if !ok || width == 0 {
		return fmt.Sprintf("%q", value)
	}
	var lines []string
	for element := range slices.Chunk(elements, width) {
		lines = append(lines, fmt.Sprintf("%q", element))
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// asUser returns the address of the store for another user.
func (s *store) asUser(user, passwordFile string) string {
	s.t.Helper()
	return strings.Replace(s.url, "parlor:"+readFile(s.t, s.secrets, "redis_password")+"@",
		user+":"+readFile(s.t, s.secrets, passwordFile)+"@", 1)
}
