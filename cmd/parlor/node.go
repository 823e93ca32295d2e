package main

import (
	"cmp"
	"io"
	"log/slog"
	"net/http"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/accounts"
	"github.com/parlor-games/parlor/internal/assets"
	"github.com/parlor-games/parlor/internal/auth"
	"github.com/parlor-games/parlor/internal/config"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/nodes"
	"github.com/parlor-games/parlor/internal/progress"
	"github.com/parlor-games/parlor/internal/readiness"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/stops"
	"github.com/parlor-games/parlor/internal/trail"
	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// domains are all domains on one store.
type domains struct {
	db     *redisdb.DB
	users  *users.Service
	games  *games.Service
	wallet *wallet.Service
	assets *assets.Service
	auth   *auth.Service
	rooms  *rooms.Service
	stops  *stops.Service
	memory *redisdb.Watermark // decides whether anything new is admitted; the monitor keeps it
}

// newDomains returns the domains on a store.
func newDomains(db *redisdb.DB, s config.Settings, mode config.Mode) domains {
	isDev := mode == config.ModeDev
	d := domains{
		db: db, users: users.New(db), memory: redisdb.NewWatermark(slog.Default()), stops: stops.New(db, slog.Default()),
	}
	d.users.RestrictNew(d.memory.AdmitNew)
	d.wallet = wallet.New(db, d.users, wallet.Options{ReceiptTTL: s.IdempotencyTTL, Stops: d.stops})
	d.games = games.New(db, games.Options{
		Validator: gameValidator{d.wallet}, ReservedIssuer: auth.OwnIssuer, AllowAnyOrigin: isDev,
		AllowLoopbackIssuers: isDev,
	})
	d.users.RestrictAvatars(d.games)
	d.assets = assets.New(db, d.wallet, assets.Options{ReceiptTTL: s.IdempotencyTTL})
	d.auth = auth.New(db, d.users, d.games, d.wallet, auth.Options{
		SigningKeys: revealKeys(s.SigningKeys), AdminKeys: revealKeys(s.AdminKeys), AllowLoopbackIssuers: isDev,
		AccessTTL: s.AccessTTL,
	})
	var quotas rooms.Quotas
	if s.RateLimitsEnabled {
		quotas = rooms.DefaultQuotas()
	}
	d.rooms = rooms.New(db, d.wallet, d.users, d.games, rooms.Options{
		Shards: s.RoomShards, Retention: s.RoomRetention, ReceiptTTL: s.IdempotencyTTL,
		AdmitNew: d.memory.AdmitNew, Quotas: quotas, CheckMoney: d.wallet.CheckMoney,
	})
	return d
}

func revealKeys(keys []config.Secret) [][]byte {
	list := make([][]byte, len(keys))
	for i, key := range keys {
		list[i] = []byte(key.Reveal())
	}
	return list
}

// saveKeys returns the keys that sign saves.
func saveKeys(s config.Settings) [][]byte {
	if len(s.SaveKeys) > 0 {
		return revealKeys(s.SaveKeys)
	}
	return revealKeys(s.SigningKeys)
}

// node is one Parlor node: the domains, and the API and sockets in front of them.
type node struct {
	domains
	settings  config.Settings
	mode      config.Mode
	log       *slog.Logger
	apiServer *handlers.Server
	limiter   *auth.Limiter
	nodes     *nodes.Service
	hub       *realtime.Hub
	monitor   *readiness.Monitor
}

// newNode returns a node on a store. gameServer is that of the demo, or nil.
func newNode(
	db *redisdb.DB, s config.Settings, mode config.Mode, log *slog.Logger, gameServer http.Handler,
) (*node, error) {
	n := &node{domains: newDomains(db, s, mode), settings: s, mode: mode, log: log}
	var limits auth.Limits
	if s.RateLimitsEnabled {
		limits = auth.DefaultLimits()
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	n.monitor = readiness.NewMonitor(db, requirements(s), n.memory, log)
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parlor_store_memory_used_percent",
		Help: "How much of its limit the fullest server of the store uses; above 85 nothing new is admitted.",
	}, func() float64 { return float64(n.memory.PercentUsed()) }))
	n.limiter = auth.NewLimiter(db, limits)
	n.hub = realtime.New(db, realtime.Options{Log: log})
	saves, err := progress.New(db, n.games, n.users, progress.Options{
		SigningKeys: saveKeys(s), AdmitNew: n.memory.AdmitNew, Log: log,
	})
	if err != nil {
		return nil, err
	}
	n.nodes = n.newNodes()
	n.apiServer, err = handlers.New(handlers.Deps{
		Users: n.users, Games: n.games, Wallet: n.wallet, Assets: n.assets, Rooms: n.rooms, Auth: n.auth,
		Limiter:     n.limiter,
		Idempotency: idempotency.New(db, revealKeys(s.SigningKeys), idempotency.Options{ResponseTTL: s.IdempotencyTTL}),
		Readiness:   n.monitor,
		Stops:       n.stops,
		Accounts:    accounts.New(accounts.Deps{Users: n.users, Wallet: n.wallet, Progress: saves, Auth: n.auth}),
		Trail:       trail.New(db, log),
		Progress:    saves, RealtimeHub: n.hub, Durability: s.Durability, TrustedProxies: s.TrustedProxies,
		Nodes: n.nodes, ProfilingEnabled: s.ProfilingEnabled, DevPages: mode == config.ModeDev,
		GameServer:      gameServer,
		MetricsRegistry: metrics, Log: log,
	})
	return n, err
}

// openStore opens the store, and does not wait for it.
func openStore(s config.Settings) (*redisdb.DB, error) {
	return redisdb.Open(cmp.Or(s.RedisURL.Reveal(), redisdb.EmbeddedURL))
}

// requirements returns what the settings require of the store.
func requirements(s config.Settings) redisdb.Requirements {
	return redisdb.Requirements{Durable: s.Durability == "disk", FreeShards: s.RoomShards}
}

// newLog returns the log of the process and makes it slog's default and the log of go-redis.
func newLog(s config.Settings, to io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	var handler slog.Handler = slog.NewTextHandler(to, options)
	if s.LogFormat == "json" {
		handler = slog.NewJSONHandler(to, options)
	}
	log := slog.New(handler)
	slog.SetDefault(log)
	redisdb.SetLogger(log)
	return log
}
