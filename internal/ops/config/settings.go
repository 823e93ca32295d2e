package config

import (
	"log/slog"
	"net/netip"
	"time"
)

// Settings are all settings. The tags of a field declare it:
//
//	name      the flag and the key in the file; PARLOR_ and the name in capitals is the variable
//	default   the value when it is not set; dev: the one of "parlor dev", where it differs
//	oneof     the only values
//	min, max  bounds, inclusive
//	hup       "1": SIGHUP gives a node that runs the new value
//
// docs has the meaning of each.
//
// A field of type Secret or []Secret can also be read from the file that PARLOR_…_FILE names. It
// cannot be a flag, because every process of the machine can read the flags of another one.
type Settings struct {
	ConfigFile            string         `name:"config"`
	ListenAddress         string         `name:"listen" default:"127.0.0.1:8080"`
	AdvertiseAddress      string         `name:"advertise"`
	InternalListenAddress string         `name:"internal-listen" default:"127.0.0.1:9090" dev:"127.0.0.1:0"`
	ReadyListenAddress    string         `name:"ready-listen"`
	MaxSockets            int            `name:"max-sockets" default:"8000" min:"100" max:"500000"`
	RedisURL              Secret         `name:"redis-url" hup:"1"`
	BackupURL             Secret         `name:"backup-url"`
	AdminKeys             []Secret       `name:"admin-key" hup:"1"`
	SigningKeys           []Secret       `name:"signing-key" hup:"1"`
	SaveKeys              []Secret       `name:"save-key" hup:"1"`
	Durability            string         `name:"durability" default:"disk" dev:"memory" oneof:"memory disk replica"`
	StateDir              string         `name:"state-dir"`
	Archive               string         `name:"archive"`
	ArchiveEndpoint       string         `name:"archive-endpoint"`
	ArchiveRegion         string         `name:"archive-region"`
	FirstGame             string         `name:"first-game"`
	FirstGameOrigins      string         `name:"first-game-origins"`
	FirstGameKey          Secret         `name:"first-game-key"`
	RoomShards            int            `name:"room-shards" default:"1" min:"1" max:"1024"`
	LogFormat             string         `name:"log" default:"json" dev:"text" oneof:"json text"`
	LogLevel              slog.Level     `name:"log-level" hup:"1" default:"info" dev:"warn" oneof:"debug info warn error"`
	InternalHosts         string         `name:"internal-hosts"`
	TrustedProxies        []netip.Prefix `name:"trusted-proxies"`
	WebhookNetworks       []netip.Prefix `name:"webhook-networks" dev:"127.0.0.0/8,::1/128"`
	RateLimitsEnabled     bool           `name:"rate-limits" default:"on" hup:"1"`
	AccessTTL             time.Duration  `name:"access-ttl" default:"15m" min:"5s" max:"1h"`
	IdempotencyTTL        time.Duration  `name:"idempotency-ttl" default:"24h" min:"24h" max:"720h"`
	RoomRetention         time.Duration  `name:"room-retention" default:"24h" min:"1m" max:"720h"`
	PresenceGrace         time.Duration  `name:"presence-grace" default:"10s" min:"1s" max:"10m"`
	StoreWait             time.Duration  `name:"store-wait" default:"5s" min:"0s" max:"10m"`
	DrainDelay            time.Duration  `name:"drain-delay" default:"1s" dev:"0s" min:"0s" max:"5m" hup:"1"`
	DrainTimeout          time.Duration  `name:"drain-timeout" default:"15s" min:"0s" max:"10m" hup:"1"`
	GCPercent             int            `name:"gc-percent" default:"25" min:"10" max:"1000"`
	MemoryLimitMiB        int            `name:"memory-limit-mib" default:"0" min:"0" max:"1048576"`
	ProfilingEnabled      bool           `name:"pprof" default:"off"`

	origins  map[string]Origin // by name
	texts    map[string]string // values as the environment would spell them, by name; secrets redacted
	warnings []string
}

// docs are the meanings of the settings, by name, for --help and the reference.
var docs = map[string]string{
	"config": "YAML file with settings: their names without the leading dashes as keys. Not a key itself.",
	"listen": "Public address. Port 0 takes a free one, which the log names.",
	"advertise": "host:port at which other nodes reach the public address of this one. A node that loses its store asks " +
		"some of the others by it whether they have theirs. None: the address of listen or, if that is 0.0.0.0, " +
		"the one from which this node reaches the store.",
	"internal-listen": "Address for metrics, profiling and the operator's console. Keep it away from the internet.",
	"ready-listen": "Second public address, which opens when the node can serve for the first time. It is for balancers " +
		"that send requests to a new address before they have checked it, such as HAProxy before 3.1: a refused connection " +
		"is tried on another node. None.",
	"max-sockets": "Connections that the installation holds at once. Any node may have to hold all of them, so it needs " +
		"as many open files and 500 more. deploy/haproxy.cfg takes its limits from the same number, and needs two open " +
		"files for each.",
	"redis-url": "The store: redis:// or rediss://user:pass@host:port/db, unix:///path, " +
		"redis-cluster:// or rediss-cluster://user:pass@host:port,host:port, redis-sentinel:// or " +
		"rediss-sentinel://user:pass@host:port,host:port/master?sentinelUser=…&sentinelPassword=…. Those that start with " +
		"rediss use TLS; ?ca=/path names the certificates to trust instead of those of the system. As a flag it may have " +
		"no password. serve needs it; dev embeds a store without it.",
	"backup-url": "The store as parlor backup connects to it, as redis-url, with a user who may copy it. No flag. " +
		"None: redis-url.",
	"admin-key": "The operator's key, at least 32 bytes. A comma-separated list rotates: all are valid. No flag. serve " +
		"needs it; dev makes one at every start. Make one with: openssl rand -hex 32",
	"signing-key": "Signs access tokens, and saves where save-key is not set, and encrypts stored responses; at least " +
		"32 bytes. A comma-separated list rotates: the first signs, all verify. No flag. serve needs it; dev makes one at " +
		"every start.",
	"save-key": "Signs saves; at least 32 bytes. A comma-separated list rotates: the first signs, all verify. A save is " +
		"readable only while the key that signed it is in the list, and is signed by the first when it is written. Set " +
		"it later with the signing keys of before at its end. None: the signing keys. No flag.",
	"durability": "What an acknowledged change survives. memory: nothing, for development and tests. disk: a crash of " +
		"Redis or of its machine, with appendfsync always; with everysec all but the last two seconds before it; the " +
		"append-only file must be on. replica: the loss of the server, because a replica of it has the change before " +
		"it is acknowledged; while no replica follows, money is refused.",
	"state-dir": "Folder of this node, on a volume, for its mark: how far the history of the money was. By it a node " +
		"notices at its start that the store was emptied, restored or replaced, and stops money. None: no mark.",
	"archive": "Where the ledger goes when it leaves the store: file:///folder, which exists and which all nodes " +
		"share, or s3://bucket/prefix, with the credentials of the AWS tools (AWS_ACCESS_KEY_ID and " +
		"AWS_SECRET_ACCESS_KEY, or the role of the machine). The same for every node. None: nothing leaves the store, " +
		"which grows with every change of money.",
	"archive-endpoint": "Server of the bucket, https://host:port, where it is not AWS.",
	"archive-region":   "Region of the bucket. None: the server says.",
	"first-game": "Name of a game that serve makes, with the id 1, where the store has no game. It has the token GOLD, " +
		"of which every new player gets 100, rooms with both settlements, and the shared state that the templates of " +
		"parlor init use. Later changes of the setting change nothing. None: no game is made.",
	"first-game-origins": "Origins (comma-separated) of the pages of the first game.",
	"first-game-key": "Server key of the first game: psk_1_ and 43 random characters, as parlor init makes it. None: " +
		"the operator makes one by POST /api/v1/admin/games/1/server-keys. No flag.",
	"room-shards": "Number of hash tags over which free rooms are spread. Fixed when the store is first used; 64 suits " +
		"a Cluster.",
	"log":       "Format of the log on stderr.",
	"log-level": "The least severe level that is logged: debug, info, warn or error.",
	"internal-hosts": "Names in the public DNS (comma-separated) by which the internal address is called, such as that " +
		"of a proxy before the console. None: addresses, names without a dot and private names only.",
	"trusted-proxies": "Networks (CIDR, comma-separated) of the proxies whose X-Forwarded-For is trusted. None: the " +
		"address of the connection counts.",
	"webhook-networks": "Networks (CIDR, comma-separated) beside the internet to which webhooks may be sent, also by " +
		"plain http: that of a game server in the same compose project or cluster. Loopback, link-local addresses, " +
		"services with the data of a cloud and the addresses of this machine only count when a network names exactly " +
		"them. The same for every node. None: https to public addresses.",
	"rate-limits": "on or off: limits on requests per player, address and class of route.",
	"access-ttl": "How long an access token of a player is valid. The SDK renews it in time; a socket of another client " +
		"closes when its token expires.",
	"idempotency-ttl": "How long the first response to an Idempotency-Key is stored.",
	"room-retention":  "How long an ended room can still be read.",
	"presence-grace": "How long the other players of a room are asked to wait for one whose last socket is gone: " +
		"graceUntil of room.disconnected. The seat stays in any case. The same for every node.",
	"store-wait": "How long dev waits for a store that cannot be reached before it fails; serve goes on trying.",
	"drain-delay": "How long a node that is stopping still serves while /readyz returns 503, so that balancers stop " +
		"sending requests first.",
	"drain-timeout": "How long running requests may take to end after that.",
	"gc-percent": "How much the live heap grows, in percent, before the garbage collector runs: less saves memory, more " +
		"saves CPU. A small heap may always grow by 32 MiB, and by 128 MiB under a load that lasts.",
	"memory-limit-mib": "Memory in MiB above which the garbage collector runs more often, whatever gc-percent is; about " +
		"nine tenths of what a container may use. 0: no limit but that of GOMEMLIMIT.",
	"pprof": "on or off: /debug/pprof/ on the internal address. A profile can show what a request contains.",
}

// IsSet reports whether the setting with this name was set, rather than left at its default.
func (s *Settings) IsSet(name string) bool { return s.origins[name] != FromDefault }

// Warnings returns a sentence for each setting that is allowed but looks like a mistake, with the
// correction.
func (s *Settings) Warnings() []string { return s.warnings }

// Origin is the source of a value.
type Origin string

// The origins, strongest first. The origin of a value from a file is the file's name.
const (
	FromFlag        Origin = "flag"
	FromEnvironment Origin = "environment"
	FromDefault     Origin = "default"
)

// Secret is text that must not be printed: all formatting gives "[redacted]". Reveal returns the
// text.
type Secret string

const redactedText = "[redacted]"

// Reveal returns the text, for the one place that uses it.
func (s Secret) Reveal() string { return string(s) }

// String returns "[redacted]", or "" for "".
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redactedText
}

// GoString hides the text from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the text from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the text from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
