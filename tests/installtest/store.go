// Package installtest starts the store of an installation as an operator does: with the secrets
// that deploy/make-secrets.sh makes, and Redis with the files of deploy/redis, alone, behind
// Sentinels or as a Cluster. Only paths, ports and names of machines are replaced. It is for tests
// only.
package installtest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
	"go.yaml.in/yaml/v3"
)

// testUser reads the whole store. It is the one line that the tests add to the users.
const testUser, testUserLine = "test", "user test on >test ~* &* +@all\n"

// Store is Redis, started with the files of an installation.
type Store struct {
	t         testing.TB
	Secrets   string              // folder of the secrets
	Servers   []*redistest.Server // that hold data
	Primaries []*redistest.Server // those of servers that take writes
	Sentinels []*redistest.Server
	URL       string // of the user of the nodes

	links map[*redistest.Server]*redistest.Proxy // on which replicas follow each server
}

// makeSecrets runs make-secrets.sh, twice, and returns the folder.
func makeSecrets(t testing.TB) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "secrets")
	before := map[string]string{}
	for range 2 { // the second time changes nothing
		script := filepath.Join(deployFolder(), "make-secrets.sh")
		if out, err := exec.Command("bash", script, folder).CombinedOutput(); err != nil {
			t.Fatalf("make-secrets.sh: %v\n%s", err, out)
		}
		made := map[string]string{}
		testkit.Check(t, filepath.WalkDir(folder, func(path string, file os.DirEntry, err error) error {
			if err == nil && !file.IsDir() {
				made[path] = ReadFile(t, path)
			}
			return err
		}))
		if len(before) > 0 && !maps.Equal(made, before) {
			t.Error("the second run of make-secrets.sh changed what the first one had made")
		}
		before = made
	}
	writeFile(t, filepath.Join(folder, usersFile), ReadFile(t, folder, usersFile)+"\n"+testUserLine)
	return folder
}

// deployFolder returns the folder deploy/ of the repository.
func deployFolder() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "../../deploy")
}

const usersFile = "redis_users.acl"

func ReadFile(t testing.TB, elements ...string) string {
	t.Helper()
	text := testkit.Must(os.ReadFile(filepath.Join(elements...)))(t)
	return strings.TrimSpace(string(text))
}

// writeFile replaces the text of a file and not the file, which a container has as a mount.
func writeFile(t testing.TB, path, text string) {
	t.Helper()
	testkit.Check(t, os.WriteFile(path, []byte(text), 0o600))
}

// copySettings writes a file of settings into a new folder of a server, with the paths of this
// machine and further replacements: old, new, old, new ….
func (s *Store) copySettings(text, name string, replacements ...string) string {
	s.t.Helper()
	dir := testkit.Must(os.MkdirTemp("", "parlor-redis-"))(s.t) // short: it has a unix socket
	s.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	paths := []string{"/run/secrets/", s.Secrets + "/", "/etc/redis/", dir + "/", "dir /data", "dir " + dir}
	replace := strings.NewReplacer(append(paths, replacements...)...)
	common := ReadFile(s.t, deployFolder(), "redis/redis.conf")
	writeFile(s.t, filepath.Join(dir, "redis.conf"), replace.Replace(common)+"\n")
	file := filepath.Join(dir, name)
	writeFile(s.t, file, replace.Replace(text)+"\n")
	return file
}

// start starts a server that holds data, with a file of deploy/redis.
func (s *Store) start(name string, args ...string) *redistest.Server {
	s.t.Helper()
	return s.startFile(s.copySettings(ReadFile(s.t, deployFolder(), "redis", name), name), args...)
}

func (s *Store) startFile(file string, args ...string) *redistest.Server {
	s.t.Helper()
	args = append(args, "--repl-diskless-sync-delay", "0") // waits for further replicas
	server := testkit.Must(redistest.StartWithFile(file, args...))(s.t, "start Redis with %s", file)
	s.t.Cleanup(server.Remove)
	s.Servers = append(s.Servers, server)
	return server
}

// command returns how a compose file starts a service.
func command(t testing.TB, file, service string) []string {
	t.Helper()
	var compose struct{ Services map[string]yaml.Node }
	var found struct{ Command []string }
	testkit.Check(t, yaml.Unmarshal([]byte(ReadFile(t, deployFolder(), file)), &compose))
	node := compose.Services[service]
	if err := node.Decode(&found); err != nil || len(found.Command) == 0 {
		t.Fatalf("%s starts %s by %v: %v", file, service, found.Command, err)
	}
	return found.Command
}

// runStart runs start.sh as a service of compose.sentinel.yaml does, up to the program that it
// starts, and returns the file that it made for that.
func (s *Store) runStart(service string, replacements ...string) string {
	s.t.Helper()
	args := command(s.t, "compose.sentinel.yaml", service)
	if args[0] != "/etc/redis/start.sh" {
		s.t.Fatalf("%s is started by %v", service, args)
	}
	dir := filepath.Dir(s.copySettings("", "empty.conf"))
	script := filepath.Join(dir, "start.sh")
	replace := strings.NewReplacer("/data/", dir+"/", "/etc/redis/", dir+"/", "/run/secrets/", s.Secrets+"/",
		"exec redis-server", "exec echo", "exec redis-sentinel", "exec echo")
	writeFile(s.t, script, replace.Replace(ReadFile(s.t, deployFolder(), "redis/start.sh")))
	var file string
	for range 2 { // the second start keeps the file
		out, err := exec.Command("sh", append([]string{script}, args[1:]...)...).CombinedOutput()
		if err != nil {
			s.t.Fatalf("start.sh %v: %v\n%s", args[1:], err, out)
		}
		file = strings.TrimSpace(string(out))
	}
	text := ReadFile(s.t, file)
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(text, replacements[i]) {
			s.t.Fatalf("the file of %s has no %q:\n%s", service, replacements[i], text)
		}
		text = strings.ReplaceAll(text, replacements[i], replacements[i+1])
	}
	writeFile(s.t, file, text+"\n")
	return file
}

// StartSingle starts one server.
func StartSingle(t testing.TB) *Store {
	t.Helper()
	s := &Store{t: t, Secrets: makeSecrets(t)}
	server := s.start("redis.conf")
	s.Primaries = s.Servers
	s.URL = strings.Replace(ReadFile(t, s.Secrets, "redis_url"), "redis:6379", server.Addr, 1)
	return s
}

// StartSentinels starts a primary, a replica and three Sentinels, as compose.sentinel.yaml does.
// The Sentinels take the primary for down after a time.
func StartSentinels(t testing.TB, downAfter time.Duration) *Store {
	t.Helper()
	s := &Store{t: t, Secrets: makeSecrets(t)}
	primary := s.startFile(s.runStart("redis-1", "replica-announce-ip redis-1", "replica-announce-ip 127.0.0.1"))
	s.Primaries = slices.Clone(s.Servers)
	_, port, _ := strings.Cut(primary.Addr, ":")
	s.startFile(s.runStart("redis-2", "replica-announce-ip redis-2", "replica-announce-ip 127.0.0.1",
		"replicaof redis-1 6379", "replicaof 127.0.0.1 "+port))
	s.URL = ReadFile(t, s.Secrets, "redis_sentinel_url")
	for i := range 3 {
		name := fmt.Sprintf("sentinel-%d", i+1)
		file := s.runStart(name, "announce-ip "+name, "announce-ip 127.0.0.1", "redis-1 6379", "127.0.0.1 "+port,
			"dir /data\n", "", "down-after-milliseconds parlor 5000",
			fmt.Sprint("down-after-milliseconds parlor ", downAfter.Milliseconds()))
		sentinel := testkit.Must(redistest.StartSentinel(file))(t, "start a Sentinel")
		t.Cleanup(sentinel.Remove)
		s.Sentinels = append(s.Sentinels, sentinel)
		s.URL = strings.Replace(s.URL, name+":26379", sentinel.Addr, 1)
	}
	for _, sentinel := range s.Sentinels {
		asked := s.client(sentinel.Addr, "parlor", "redis_password")
		redistest.Eventually(t, "a Sentinel knows the two others and the replica", func() bool {
			others, err := asked.Do(t.Context(), "SENTINEL", "SENTINELS", "parlor").Slice()
			replicas, replicasErr := asked.Do(t.Context(), "SENTINEL", "REPLICAS", "parlor").Slice()
			return err == nil && replicasErr == nil && len(others) == 2 && len(replicas) == 1
		})
	}
	s.WaitLoaded()
	return s
}

// StartCluster starts three masters with so many replicas each, as compose.cluster.yaml does, which
// form-cluster.sh makes a Cluster. What the servers say to each other goes through proxies of their
// own, and clients connect to them without one: Link returns that of a replica.
func StartCluster(t testing.TB, replicas int) *Store {
	t.Helper()
	s := &Store{t: t, Secrets: makeSecrets(t), links: map[*redistest.Server]*redistest.Proxy{}}
	s.URL = ReadFile(t, s.Secrets, "redis_cluster_url")
	form := []string{filepath.Join(deployFolder(), "redis/form-cluster.sh"), strconv.Itoa(replicas)}
	for i := range masters * (1 + replicas) {
		name := fmt.Sprintf("redis-%d", i+1)
		args := command(t, "compose.cluster.yaml", name)
		if !slices.Equal(args[:2], []string{"redis-server", "/etc/redis/cluster.conf"}) || args[len(args)-1] != name {
			t.Fatalf("%s is started by %v", name, args)
		}
		args[len(args)-1] = "localhost"
		if replicas > 0 {
			args = append(args, "--cluster-announce-ip", linkHost)
		}
		server := s.start("cluster.conf", args[2:]...)
		form = append(form, server.Addr)
		if i < masters {
			s.URL = strings.Replace(s.URL, name+":6379", server.Addr, 1)
		}
		if replicas > 0 {
			s.startLink(server)
		}
	}
	s.Primaries = s.Servers[:masters]
	for range 2 { // the second time changes nothing
		c := exec.Command("bash", form...)
		c.Env = append(os.Environ(), "REDISCLI_AUTH="+ReadFile(t, s.Secrets, "redis_admin_password"))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("form-cluster.sh: %v\n%s", err, out)
		}
	}
	s.WaitLoaded()
	return s
}

const (
	masters  = 3           // of a Cluster
	linkHost = "127.0.0.2" // where the servers of a Cluster find each other
)

// startLink starts proxies of a server at another address: one of its port, which replicas use, and
// one of the port at which the servers of a Cluster talk.
func (s *Store) startLink(server *redistest.Server) {
	s.t.Helper()
	_, text, _ := strings.Cut(server.Addr, ":")
	port := testkit.Must(strconv.Atoi(text))(s.t)
	const busOffset = 10_000
	at := func(host string, port int) string { return fmt.Sprintf("%s:%d", host, port) }
	s.links[server] = redistest.StartProxyAt(s.t, at(linkHost, port), server.Addr)
	redistest.StartProxyAt(s.t, at(linkHost, port+busOffset), at("127.0.0.1", port+busOffset))
}

// Link returns the way on which replicas follow a server. Behind Sentinels it is made by the first
// call, and the replica goes over to it: after half a minute Sentinels send it back.
func (s *Store) Link(primary *redistest.Server) *redistest.Proxy {
	s.t.Helper()
	if link := s.links[primary]; link != nil {
		return link
	}
	link := redistest.StartProxy(s.t, primary.Addr)
	host, port, _ := strings.Cut(link.Addr, ":")
	for _, server := range s.Servers {
		if server == primary {
			continue
		}
		testkit.Check(s.t, s.Reader(server).ReplicaOf(s.t.Context(), host, port).Err())
	}
	if s.links == nil {
		s.links = map[*redistest.Server]*redistest.Proxy{}
	}
	s.links[primary] = link
	s.WaitLoaded()
	return link
}

// NodeSettings are those of compose.yaml for a node, as NAME=value, with a folder of its own.
func (s *Store) NodeSettings() []string {
	s.t.Helper()
	dir := s.t.TempDir()
	return []string{
		"PARLOR_ADMIN_KEY=", "PARLOR_ADMIN_KEY_FILE=" + filepath.Join(s.Secrets, "admin_key"),
		"PARLOR_SIGNING_KEY=", "PARLOR_SIGNING_KEY_FILE=" + filepath.Join(s.Secrets, "signing_key"),
		"PARLOR_STATE_DIR=" + dir, "PARLOR_RATE_LIMITS=off",
	}
}

// AsAdmin runs redis-cli as parlor-admin.
func (s *Store) AsAdmin(args ...string) string {
	s.t.Helper()
	c := exec.Command("redis-cli", append([]string{"--user", "parlor-admin"}, args...)...)
	c.Env = append(os.Environ(), "REDISCLI_AUTH="+ReadFile(s.t, s.Secrets, "redis_admin_password"))
	out, err := c.CombinedOutput()
	if err != nil {
		s.t.Fatalf("redis-cli %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// client returns a client of a server for a user whose password is a secret.
func (s *Store) client(addr, user, passwordFile string) *redis.Client {
	return s.clientOf(&redis.Options{Addr: addr, Username: user, Password: ReadFile(s.t, s.Secrets, passwordFile)})
}

// Reader returns a client of a server that may do everything.
func (s *Store) Reader(server *redistest.Server) *redis.Client {
	return s.clientOf(&redis.Options{Addr: server.Addr, Username: testUser, Password: testUser})
}

func (s *Store) clientOf(o *redis.Options) *redis.Client {
	o.MaxRetries = -1
	client := redis.NewClient(o)
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

// WaitLoaded waits until every server has read its file, and is in step with the others.
func (s *Store) WaitLoaded() {
	s.t.Helper()
	for _, server := range s.Servers {
		client := s.Reader(server)
		redistest.Eventually(s.t, "a server of the store serves", func() bool {
			info, err := client.Info(s.t.Context()).Result()
			if err != nil || !strings.Contains(info, "\nloading:0") || strings.Contains(info, "\nmaster_link_status:down") {
				return false
			}
			if !strings.Contains(info, "\ncluster_enabled:1") {
				return true
			}
			state, err := client.ClusterInfo(s.t.Context()).Result()
			return err == nil && strings.Contains(state, "cluster_state:ok") &&
				strings.Contains(state, fmt.Sprint("cluster_known_nodes:", len(s.Servers)))
		})
	}
}

// WantNothingRefused checks that no user of the store lacked a right.
func (s *Store) WantNothingRefused() {
	s.t.Helper()
	for _, server := range s.Servers {
		_, port, _ := strings.Cut(server.Addr, ":")
		if log := s.AsAdmin("-p", port, "ACL", "LOG"); log != "" {
			s.t.Errorf("the store refused a user something:\n%s", log)
		}
	}
}

// Key is what the store has under one key.
type Key struct {
	Kind     string // as TYPE replies
	Value    string // the elements; those of a hash or a set sorted
	ExpireAt int64  // in ms since 1970, -1: never
}

// ReadKeys returns all keys of a server.
func (s *Store) ReadKeys(server *redistest.Server) map[string]Key {
	s.t.Helper()
	ctx, client := s.t.Context(), s.Reader(server)
	names := testkit.Must(client.Keys(ctx, "*").Result())(s.t)
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
	all := map[string]Key{}
	for name, value := range values {
		found, err := value.Result()
		if errors.Is(err, redis.Nil) {
			continue // its time was over meanwhile
		}
		testkit.Check(s.t, err, "read %s", name)
		kind := kinds[name].Val()
		expireAt := int64(ends[name].Val()) // -1 is no time
		if expireAt > 0 {
			expireAt = ends[name].Val().Milliseconds()
		}
		all[name] = Key{kind, textOf(kind, found), expireAt}
	}
	return all
}

// ReadAll returns the keys of every server, the replicas' too.
func (s *Store) ReadAll() []map[string]Key {
	s.t.Helper()
	var all []map[string]Key
	for _, server := range s.Servers {
		all = append(all, s.ReadKeys(server))
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

// AsUser returns the address of the store for another user.
func (s *Store) AsUser(user, passwordFile string) string {
	s.t.Helper()
	return strings.Replace(s.URL, "parlor:"+ReadFile(s.t, s.Secrets, "redis_password")+"@",
		user+":"+ReadFile(s.t, s.Secrets, passwordFile)+"@", 1)
}

// TestURL is the address of the store for the user of the tests, who may do everything.
func (s *Store) TestURL() string {
	s.t.Helper()
	own := "parlor:" + ReadFile(s.t, s.Secrets, "redis_password") + "@"
	return strings.Replace(s.URL, own, testUser+":"+testUser+"@", 1)
}
