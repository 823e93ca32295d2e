package config

import (
	"log/slog"
	"net/netip"
	"time"
)

// Settings is everything that can be set. A field's tags are its contract:
//
//	name     the flag and the key in the file; PARLOR_ and the name in capitals is the variable
//	default  its value when nobody sets it; dev the one under "parlor dev", where it differs
//	oneof    the words it may have; min and max its bounds
//	doc      what it means, for the reference
//
// A field of type Secret or []Secret can also be read from the file that PARLOR_…_FILE names.
type Settings struct {
	Config         string         `name:"config" doc:"YAML file with settings: their names without the leading dashes as keys. Not a key itself."`
	Listen         string         `name:"listen" default:"127.0.0.1:8080" doc:"Public address. Port 0 takes a free one, which the log tells."`
	InternalListen string         `name:"internal-listen" default:"127.0.0.1:9090" dev:"127.0.0.1:0" doc:"Address for metrics and profiling. Keep it away from the internet."`
	RedisURL       Secret         `name:"redis-url" doc:"The store: redis:// or rediss://user:pass@host:port/db, unix:///path, redis-cluster://host:port,host:port, redis-sentinel://host:port,host:port/master. serve needs it; dev embeds a store without it."`
	AdminKey       Secret         `name:"admin-key" doc:"The operator's key, at least 32 bytes. serve needs it; dev makes one at every start. Make one with: openssl rand -hex 32"`
	SigningKey     []Secret       `name:"signing-key" doc:"Signs access tokens and saves; at least 32 bytes. A comma-separated list rotates: the first signs, all verify. A save is readable only while the key that signed it is in the list. serve needs it; dev makes one at every start."`
	Durability     string         `name:"durability" default:"disk" dev:"memory" oneof:"memory disk replica" doc:"What an acknowledged change survives. memory: nothing, for play and tests. disk: a crash of Redis, which must have its append-only file on. replica is not offered by this release yet."`
	RoomShards     int            `name:"room-shards" default:"1" min:"1" max:"1024" doc:"Number of hash tags over which free rooms are spread. Fixed when the store is first used; 64 suits a Cluster."`
	Log            string         `name:"log" default:"json" dev:"text" oneof:"json text" doc:"Form of the log on stderr."`
	LogLevel       slog.Level     `name:"log-level" default:"info" doc:"The least severe that is logged: debug, info, warn or error."`
	TrustedProxies []netip.Prefix `name:"trusted-proxies" doc:"Networks (CIDR, comma-separated) of the proxies whose X-Forwarded-For is believed. None: the peer's address counts."`
	RateLimits     bool           `name:"rate-limits" default:"on" doc:"on or off: limits on requests per player, address and class of route."`
	IdempotencyTTL time.Duration  `name:"idempotency-ttl" default:"24h" min:"24h" max:"720h" doc:"How long the first answer to an Idempotency-Key is kept."`
	RoomRetention  time.Duration  `name:"room-retention" default:"24h" min:"1m" max:"720h" doc:"How long an ended room can still be read."`
	StoreWait      time.Duration  `name:"store-wait" default:"5s" max:"10m" doc:"How long a start waits for a store that cannot be reached before it gives up."`
	DrainDelay     time.Duration  `name:"drain-delay" default:"1s" dev:"0s" max:"5m" doc:"How long a node that was told to stop still serves while /readyz says 503, so that balancers look away first."`
	DrainTimeout   time.Duration  `name:"drain-timeout" default:"15s" max:"10m" doc:"How long requests under way may take to end after that."`

	origins  map[string]Origin
	warnings []string
}

// Given tells whether somebody set the setting with this name, rather than left it at its default.
func (s *Settings) Given(name string) bool { return s.origins[name] != FromDefault }

// Warnings are what is allowed and still looks like a mistake, each a sentence with the fix.
func (s *Settings) Warnings() []string { return s.warnings }

// Origin says where a value came from.
type Origin string

// The origins, strongest first. A file's origin names the file.
const (
	FromFlag        Origin = "flag"
	FromEnvironment Origin = "environment"
	FromDefault     Origin = "default"
)

// Secret is text that must not be seen: whatever prints it prints a mark instead. Reveal gives the text.
type Secret string

const redacted = "[redacted]"

// Reveal gives the text, for the one place that uses it.
func (s Secret) Reveal() string { return string(s) }

// String hides the text; "" stays "".
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the text from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the text from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the text from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
