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
	// Client sends single commands. Stores use it for what is read now and then; every change goes through Run.
	Client redis.UniversalClient
	// AutoPipelined sends a command in one round trip with those of other requests that wait at the same moment. It is for single reads
	// on hot paths, and Run uses it. It returns when the reply is there; a context that ends meanwhile does not end the wait.
	AutoPipelined redis.Cmdable
	// PublishCommand is the verb that scripts use to ring a channel: SPUBLISH on Cluster, where a message
	// then stays on the shard of its hash tag, else PUBLISH.
	PublishCommand string

	kind     Kind
	scripts  processor
	embedded *embedded
}

// Kind is the shape of the store.
type Kind string

// The shapes.
const (
	KindSingle   Kind = "single"
	KindSentinel Kind = "sentinel"
	KindCluster  Kind = "cluster"
	KindEmbedded Kind = "embedded"
)

// Kind tells the shape of the store.
func (db *DB) Kind() Kind { return db.kind }

// EmbeddedURL opens a store inside this process; its data is gone when the process ends.
const EmbeddedURL = "embedded:"

// Every command has these bounds. go-redis resends a command whose reply was lost, up to maxRetries
// times; that is harmless because every script is idempotent, by a receipt or by nature.
const (
	dialTimeout = 2 * time.Second
	dialTries   = 1 // a store that is gone is told at once; whoever asks decides whether to ask again
	ioTimeout   = 3 * time.Second
	maxRetries  = 2
	protocol    = 2 // RESP3 has nothing that is used here, and has the client look for pushes before every reply
)

// Open opens the store at a URL:
//
//	redis://user:pass@host:port/db   rediss://… with TLS   unix:///path/to.sock?db=0
//	redis-cluster://user:pass@host:port,host:port          redis-sentinel://user:pass@host:port,host:port/master?db=0
//	embedded:
//
// It does not wait for the store; Ping does. An error tells what is wrong with the URL, without its password.
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
		o.ContextTimeoutEnabled, o.DialerRetries, o.Protocol = true, dialTries, protocol
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
			ContextTimeoutEnabled: true, DialerRetries: dialTries, Protocol: protocol,
		}), KindCluster)
	}
	if a.path == "" {
		return nil, errors.New("redis-sentinel:// address: the name of the master must follow the hosts")
	}
	return newDB(redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: a.path, SentinelAddrs: a.hosts, Username: a.user, Password: a.password, DB: a.db,
		DialTimeout: dialTimeout, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout, MaxRetries: maxRetries,
		ContextTimeoutEnabled: true, DialerRetries: dialTries, Protocol: protocol,
	}), KindSentinel)
}

// batching is implemented by both kinds of client.
type batching interface {
	redis.UniversalClient
	AutoPipeline() (*redis.AutoPipeliner, error)
}

// processor sends a command that is put together by hand; its Do would send it alone.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

func newDB(client batching, kind Kind) (*DB, error) {
	shared, err := client.AutoPipeline()
	if err != nil {
		return nil, fmt.Errorf("share round trips: %w", err)
	}
	db := &DB{Client: client, AutoPipelined: shared, PublishCommand: "PUBLISH", kind: kind, scripts: shared}
	if kind == KindCluster {
		db.PublishCommand = "SPUBLISH"
	}
	return db, nil
}

type hosts struct {
	user, password string
	hosts          []string
	path           string
	db             int
}

func parseHosts(rest string) (hosts, error) {
	var a hosts
	rest, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return a, errors.New("its query cannot be read")
	}
	if text := values.Get("db"); text != "" {
		if a.db, err = strconv.Atoi(text); err != nil || a.db < 0 {
			return a, errors.New("db must be a number")
		}
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		user, password, _ := strings.Cut(rest[:at], ":")
		if a.user, err = url.PathUnescape(user); err == nil {
			a.password, err = url.PathUnescape(password)
		}
		if err != nil {
			return a, errors.New("its user or password is not escaped well")
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

// withoutURL drops the address that net/url puts into its errors, since it may hold a password.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// Ping asks the store for a sign of life.
func (db *DB) Ping(ctx context.Context) error {
	return WrapError("ping the store", db.Client.Ping(ctx).Err())
}

// Close ends all connections, and the store itself where it is embedded.
func (db *DB) Close() error {
	err := db.Client.Close()
	if db.embedded != nil {
		db.embedded.stop()
	}
	return err
}
