package redisdb

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/store/storeclock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// DB is an open store. It is safe for concurrent use; Close it once.
type DB struct {
	// Client sends single commands. Stores use it for reads off the hot paths; every change is a
	// script.
	Client redis.UniversalClient
	// AutoPipelined is for single reads on hot paths, and RunScript uses it. Measured side by side
	// in `make bench` on two busy cores, a request cost the node a quarter to a third less CPU than
	// with one connection a command (docs/decisions/0008-automatic-pipelining.md). A command returns
	// when it is queued; reading its result waits. Commands that one goroutine queues are executed in
	// their order.
	AutoPipelined AutoPipeline
	// PublishCommand is what scripts use to publish: SPUBLISH on Cluster, where a message then stays
	// on the shard of its hash tag, else PUBLISH.
	PublishCommand string
	// Clock knows how far the store's clock is from the node's. What ends something at a time asks it.
	Clock *storeclock.Clock

	kind      Kind
	hosts     []string  // host:port of servers or Sentinels; none for other kinds
	embedded  *embedded // nil for other kinds
	newClient func() redis.UniversalClient
	replicas  *replicaConfirmation // nil unless RequireReplicas was called
	economies economyHooks
	layout    atomic.Int32 // that the store had last; 0 before it was read
	target    string       // the address without what access has
	access    *atomic.Pointer[access]
	// unreadable is why the store has no number for its layout, as while package migrate works; nil
	// when it has one.
	unreadable atomic.Pointer[string]
}

// Kind is how the store is deployed.
type Kind string

// The kinds of stores.
const (
	KindSingle   Kind = "single"
	KindSentinel Kind = "sentinel"
	KindCluster  Kind = "cluster"
	KindEmbedded Kind = "embedded"
)

// Kind returns how the store is deployed.
func (db *DB) Kind() Kind { return db.kind }

// EmbeddedURL opens a store inside this process. Its data is lost when the process ends.
const EmbeddedURL = "embedded:"

// Every command has these limits. go-redis resends a command whose reply was lost, up to maxRetries
// times. That is harmless, since every script is idempotent, by a receipt or by nature. All tries
// together take commandTimeout at most.
const (
	commandTimeout = 3 * time.Second
	dialTimeout    = 2 * time.Second
	dialAttempts   = 1 // an unreachable store is reported at once; the caller decides whether to retry
	ioTimeout      = 3 * time.Second
	maxRetries     = 2
	// clusterReload is how old a client's view of a Cluster may be. When a primary disappears,
	// go-redis does not look for the new owner of its slots by itself; only a redirection or an old
	// view makes it do so.
	clusterReload = time.Second
	respVersion   = 2 // RESP3 has nothing that is used here, and makes the client check for pushes before every reply
)

// Open opens the store at a URL:
//
//	redis://user:pass@host:port/db   rediss://… with TLS   unix:///path/to.sock?db=0
//	redis-cluster://user:pass@host:port,host:port   rediss-cluster://… with TLS
//	redis-sentinel://user:pass@host:port,host:port/master?db=0   rediss-sentinel://… with TLS
//	embedded:
//
// The user and password of the Sentinels are sentinelUser and sentinelPassword in the query. With
// TLS the query may name files in PEM: ca with the certificates to trust instead of those of the
// system, cert and key with this client's own. skip_verify=true trusts every server, for
// development.
//
// It does not wait for the store; Ping does. An error describes what is wrong with the URL, without
// its password.
func Open(rawURL string) (*DB, error) {
	if rawURL == EmbeddedURL {
		return openEmbedded()
	}
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok {
		return nil, errors.New("the store's address must look like redis://host:port")
	}
	db, err := open(scheme, rest)
	if err != nil {
		return nil, fmt.Errorf("%s:// address: %w", scheme, err)
	}
	return db, nil
}

func open(scheme, rest string) (*DB, error) {
	rest, rawQuery, _ := strings.Cut(rest, "?")
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, errors.New("its query cannot be parsed")
	}
	var tlsConfig *tls.Config
	var files [][]byte
	if strings.HasPrefix(scheme, "rediss") {
		if tlsConfig, files, err = takeTLSConfig(query); err != nil {
			return nil, err
		}
	}
	switch scheme {
	case "redis", "rediss", "unix":
		return openSingle(scheme+"://"+rest, query, tlsConfig, files)
	case "redis-cluster", "rediss-cluster":
		return openCluster(rest, query, tlsConfig, files)
	case "redis-sentinel", "rediss-sentinel":
		return openSentinel(rest, query, tlsConfig, files)
	default:
		return nil, errors.New("there is no such scheme")
	}
}

func openSingle(address string, query url.Values, tlsConfig *tls.Config, files [][]byte) (*DB, error) {
	o, err := redis.ParseURL(address + "?" + query.Encode())
	if err != nil {
		return nil, withoutURL(err)
	}
	if tlsConfig != nil {
		tlsConfig.ServerName = o.TLSConfig.ServerName
		o.TLSConfig = tlsConfig
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.MaxRetries = dialTimeout, ioTimeout, ioTimeout, maxRetries
	o.ContextTimeoutEnabled, o.DialerRetries, o.Protocol = true, dialAttempts, respVersion
	o.MaintNotificationsConfig = noNotices()
	a := newAccess(access{user: o.Username, password: o.Password, tls: o.TLSConfig}, files...)
	o.Username, o.Password, o.CredentialsProvider, o.Dialer = "", "", credentialsOf(a), dialerOf(a)
	target := fmt.Sprint(o.Network, o.Addr, o.DB, "?", query.Encode(), tlsConfig != nil)
	var hosts []string
	if o.Network != "unix" {
		hosts = []string{o.Addr}
	}
	return newDB(func() redis.UniversalClient {
		options := *o
		return redis.NewClient(&options)
	}, KindSingle, target, a, hosts...)
}

func openCluster(rest string, query url.Values, tlsConfig *tls.Config, files [][]byte) (*DB, error) {
	a, err := parseHosts(rest, query)
	if err != nil {
		return nil, err
	}
	if a.path != "" || a.dbNumber != 0 {
		return nil, errors.New("a cluster has no database number")
	}
	held := newAccess(access{user: a.user, password: a.password, tls: tlsConfig}, files...)
	return newDB(func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: a.hosts, CredentialsProvider: credentialsOf(held), TLSConfig: tlsConfig, Dialer: dialerOf(held),
			DialTimeout: dialTimeout, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout, MaxRetries: maxRetries,
			ContextTimeoutEnabled: true, DialerRetries: dialAttempts, Protocol: respVersion,
			ClusterStateReloadInterval: clusterReload, MaintNotificationsConfig: noNotices(),
		})
	}, KindCluster, fmt.Sprint(a.hosts, tlsConfig != nil), held, a.hosts...)
}

func openSentinel(rest string, query url.Values, tlsConfig *tls.Config, files [][]byte) (*DB, error) {
	sentinelUser, sentinelPassword := take(query, "sentinelUser"), take(query, "sentinelPassword")
	if sentinelUser != "" && sentinelPassword == "" {
		return nil, errors.New("sentinelUser needs sentinelPassword")
	}
	a, err := parseHosts(rest, query)
	if err != nil {
		return nil, err
	}
	if a.path == "" {
		return nil, errors.New("the name of the master must follow the hosts")
	}
	held := newAccess(access{user: a.user, password: a.password, tls: tlsConfig}, files...)
	return newDB(func() redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: a.path, SentinelAddrs: a.hosts, CredentialsProvider: credentialsOf(held), DB: a.dbNumber,
			SentinelUsername: sentinelUser, SentinelPassword: sentinelPassword, TLSConfig: tlsConfig, Dialer: dialerOf(held),
			DialTimeout: dialTimeout, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout, MaxRetries: maxRetries,
			ContextTimeoutEnabled: true, DialerRetries: dialAttempts, Protocol: respVersion,
		})
	}, KindSentinel, fmt.Sprint(a.hosts, a.path, a.dbNumber, sentinelUser, sentinelPassword, tlsConfig != nil), held,
		a.hosts...)
}

// noNotices turns off a handshake that only a hosted Redis knows.
func noNotices() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// take removes a parameter of a query and returns its value.
func take(query url.Values, name string) string {
	value := query.Get(name)
	query.Del(name)
	return value
}

// takeTLSConfig removes the TLS parameters from a query and returns the configuration, with the
// contents of the named files. It sets no server name, because that is the host of each connection.
func takeTLSConfig(query url.Values) (*tls.Config, [][]byte, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	var files [][]byte
	if path := take(query, "ca"); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, fmt.Errorf("ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, nil, fmt.Errorf("ca: %s has no certificate in PEM", path)
		}
		files = append(files, text)
	}
	if cert, key := take(query, "cert"), take(query, "key"); cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, nil, fmt.Errorf("cert and key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
		files = append(files, pair.Certificate...) // its key belongs to it
	}
	if text := take(query, "skip_verify"); text != "" {
		var err error
		if config.InsecureSkipVerify, err = strconv.ParseBool(text); err != nil {
			return nil, nil, errors.New("skip_verify must be true or false")
		}
		files = append(files, []byte(text))
	}
	return config, files, nil
}

// newDB returns a store. newClient must return a new client of it at each call.
func newDB(
	newClient func() redis.UniversalClient, kind Kind, target string, a *atomic.Pointer[access], hosts ...string,
) (*DB, error) {
	client := newClient()
	addHooks(client)
	db := &DB{
		Client: client, AutoPipelined: newPipeline(client), PublishCommand: "PUBLISH", kind: kind, newClient: newClient,
		target: string(kind) + target, access: a, hosts: hosts, Clock: storeclock.New(storeclock.SystemSource()),
	}
	if kind == KindCluster {
		db.PublishCommand = "SPUBLISH"
	}
	return db, nil
}

// addHooks makes a client keep what this package promises of its commands.
func addHooks(client redis.UniversalClient) {
	client.AddHook(timeLimit{&sharedLimit{}}) // the first one is around the others
	client.AddHook(costHook{})
	if cluster, ok := client.(*redis.ClusterClient); ok {
		client.AddHook(clusterPipelines{cluster})
	}
}

// hostList is the part after the scheme of a URL with several hosts.
type hostList struct {
	user, password string
	hosts          []string // host:port
	path           string   // of a Sentinel: the name of the master
	dbNumber       int      // number of the database
}

// parseHosts parses the part after the scheme, and what is left of the query.
func parseHosts(rest string, query url.Values) (hostList, error) {
	var a hostList
	var err error
	if text := take(query, "db"); text != "" {
		if a.dbNumber, err = strconv.Atoi(text); err != nil || a.dbNumber < 0 {
			return a, errors.New("db must be a number")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		return a, fmt.Errorf("there is no parameter %q here", name)
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		user, password, _ := strings.Cut(rest[:at], ":")
		if a.user, err = url.PathUnescape(user); err == nil {
			a.password, err = url.PathUnescape(password)
		}
		if err != nil {
			return a, errors.New("its user or password is not percent-encoded correctly")
		}
		rest = rest[at+1:]
	}
	rest, a.path, _ = strings.Cut(rest, "/")
	for address := range strings.SplitSeq(rest, ",") {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return a, fmt.Errorf("%q is not host:port", address)
		}
		a.hosts = append(a.hosts, address)
	}
	return a, nil
}

// withoutURL returns err without the address that net/url puts into it: it may contain a password.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// Ping reports whether the store can be reached. It returns store_unavailable when it cannot.
func (db *DB) Ping(ctx context.Context) error {
	return WrapError("ping the store", db.Client.Ping(ctx).Err())
}

// Close closes all connections, and the store itself when it is embedded.
func (db *DB) Close() error {
	err := db.Client.Close()
	db.AutoPipelined.queue.close()
	if db.replicas != nil {
		err = errors.Join(err, db.replicas.client.Close())
		db.replicas.pipeline.queue.close()
	}
	if db.embedded != nil {
		db.embedded.stop()
	}
	return err
}
