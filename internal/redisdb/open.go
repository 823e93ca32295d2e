package redisdb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// DB is an open store. It is safe for concurrent use; Close it once.
type DB struct {
	// Client sends single commands. Stores use it for reads off the hot paths; every change is a
	// script.
	Client redis.UniversalClient
	// AutoPipelined sends a command in one round trip with those of other requests that wait at the
	// same moment. It is for single reads on hot paths, and RunScript uses it. Measured side by side
	// in `make bench` on two busy cores, a request cost the node a quarter to a third less CPU than
	// with one connection a command (docs/decisions/0008-shared-round-trips.md). A command returns
	// when it is queued; reading its result waits. Commands that one goroutine queues are executed in
	// their order. The price: a context that ends does not end the wait for the reply; the
	// connection's time-outs do.
	AutoPipelined redis.Cmdable
	// PublishCommand is what scripts use to publish: SPUBLISH on Cluster, where a message then stays
	// on the shard of its hash tag, else PUBLISH.
	PublishCommand string

	kind     Kind
	embedded *embedded // nil for other kinds
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
// times. That is harmless, since every script is idempotent, by a receipt or by nature.
const (
	dialTimeout  = 2 * time.Second
	dialAttempts = 1 // an unreachable store is reported at once; the caller decides whether to retry
	ioTimeout    = 3 * time.Second
	maxRetries   = 2
	respVersion  = 2 // RESP3 has nothing that is used here, and makes the client check for pushes before every reply
)

// Open opens the store at a URL:
//
//	redis://user:pass@host:port/db   rediss://… with TLS   unix:///path/to.sock?db=0
//	redis-cluster://user:pass@host:port,host:port
//	redis-sentinel://user:pass@host:port,host:port/master?db=0
//	embedded:
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
	switch scheme {
	case "redis", "rediss", "unix":
		o, err := redis.ParseURL(rawURL)
		if err != nil {
			return nil, fmt.Errorf("%s:// address: %w", scheme, withoutURL(err))
		}
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.MaxRetries = dialTimeout, ioTimeout, ioTimeout, maxRetries
		o.ContextTimeoutEnabled, o.DialerRetries, o.Protocol = true, dialAttempts, respVersion
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		return newDB(redis.NewClient(o), KindSingle)
	case "redis-cluster", "redis-sentinel":
	default:
		return nil, fmt.Errorf("the store's address has the unknown scheme %q", scheme)
	}

	a, err := parseHosts(rest)
	if err != nil {
		return nil, fmt.Errorf("%s:// address: %w", scheme, err)
	}
	if scheme == "redis-cluster" {
		if a.path != "" {
			return nil, errors.New("redis-cluster:// address: a cluster has no database number")
		}
		return newDB(redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: a.hosts, Username: a.user, Password: a.password,
			DialTimeout: dialTimeout, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout, MaxRetries: maxRetries,
			ContextTimeoutEnabled: true, DialerRetries: dialAttempts, Protocol: respVersion,
		}), KindCluster)
	}
	if a.path == "" {
		return nil, errors.New("redis-sentinel:// address: the name of the master must follow the hosts")
	}
	return newDB(redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: a.path, SentinelAddrs: a.hosts, Username: a.user, Password: a.password, DB: a.dbNumber,
		DialTimeout: dialTimeout, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout, MaxRetries: maxRetries,
		ContextTimeoutEnabled: true, DialerRetries: dialAttempts, Protocol: respVersion,
	}), KindSentinel)
}

// pipeliningClient is implemented by the clients of single servers and of Clusters.
type pipeliningClient interface {
	redis.UniversalClient
	AsyncAutoPipeline() (*redis.AutoPipeliner, error)
}

func newDB(client pipeliningClient, kind Kind) (*DB, error) {
	pipeliner, err := client.AsyncAutoPipeline()
	if err != nil {
		return nil, fmt.Errorf("start the auto-pipeliner: %w", err)
	}
	db := &DB{Client: client, AutoPipelined: pipeliner, PublishCommand: "PUBLISH", kind: kind}
	if kind == KindCluster {
		db.PublishCommand = "SPUBLISH"
	}
	return db, nil
}

// hostList is the part after the scheme of a URL with several hosts.
type hostList struct {
	user, password string
	hosts          []string // host:port
	path           string   // of a Sentinel: the name of the master
	dbNumber       int      // number of the database
}

func parseHosts(rest string) (hostList, error) {
	var a hostList
	rest, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return a, errors.New("its query cannot be parsed")
	}
	if text := values.Get("db"); text != "" {
		if a.dbNumber, err = strconv.Atoi(text); err != nil || a.dbNumber < 0 {
			return a, errors.New("db must be a number")
		}
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
	for host := range strings.SplitSeq(rest, ",") {
		if _, port, ok := strings.Cut(host, ":"); !ok || port == "" {
			return a, fmt.Errorf("%q is not host:port", host)
		}
		a.hosts = append(a.hosts, host)
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
	if db.embedded != nil {
		db.embedded.stop()
	}
	return err
}
