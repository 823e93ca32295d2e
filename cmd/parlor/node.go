package main

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/competition/tournaments"
	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/base/logs"
	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/archiver"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/limits"
	"github.com/parlor-games/parlor/internal/money/moneyhalt"
	"github.com/parlor-games/parlor/internal/money/prizes"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/ops/activity"
	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/ops/nodes"
	"github.com/parlor-games/parlor/internal/ops/readiness"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/ops/webhooks"
	"github.com/parlor-games/parlor/internal/players/accounts"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/calls"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/presence"
	"github.com/parlor-games/parlor/internal/players/progress"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/players/servers"
	"github.com/parlor-games/parlor/internal/players/usage"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// domains are all domains on one store.
type domains struct {
	db        *redisdb.DB
	users     *users.Service
	games     *games.Service
	ledgers   *ledgerstore.Store
	alarm     *audit.Alarm
	wallet    *wallet.Service
	assets    *assets.Service
	auth      *auth.Service // nil in a tool without signing keys
	rooms     *rooms.Service
	boards    *leaderboards.Service
	prizes    *prizes.Service
	tours     *tournaments.Service
	moneyHalt *moneyhalt.Service
	memory    *redisdb.Watermark // how full the store is; the monitor keeps it
	usage     *usage.Service     // decides whether a game gets anything new
	activity  *activity.Service  // takes samples of games
}

// openArchive returns the archive of the ledger, nil for none.
func openArchive(s config.Settings) (*archive.Archive, error) {
	if s.Archive == "" {
		return nil, nil
	}
	return archive.Open(s.Archive, archive.S3Options{Endpoint: s.ArchiveEndpoint, Region: s.ArchiveRegion})
}

// newDomains returns the domains on a store. A tool that has no signing keys signs nobody in and
// opens no rooms of matches.
func newDomains(db *redisdb.DB, ledgerArchive *archive.Archive, s config.Settings, mode config.Mode) domains {
	isDev := mode == config.ModeDev
	d := domains{db: db, memory: redisdb.NewWatermark(slog.Default()), moneyHalt: moneyhalt.New(db, slog.Default())}
	// Functions stand for the domains that are made after those that ask them.
	d.users = users.New(db, users.Options{
		AvatarHosts: func(ctx context.Context, gameID int64) ([]string, error) { return d.games.AvatarHosts(ctx, gameID) },
		AdmitNew:    d.admitPlayer,
	})
	d.ledgers = ledgerstore.New(db, ledgerArchive)
	d.alarm = audit.NewAlarm(db, d.ledgers, d.moneyHalt)
	d.wallet = wallet.New(db, d.users, wallet.Options{
		ReceiptTTL: s.IdempotencyTTL, Ledgers: d.ledgers, Halter: d.moneyHalt, AfterFold: d.alarm.AuditGames,
	})
	d.games = games.New(db, games.Options{
		Validator: gameValidator{d.wallet}, ReservedIssuer: auth.OwnIssuer, AllowAnyOrigin: isDev,
		AllowLoopbackIssuers: isDev,
		HasPrizes: func(ctx context.Context, gameID int64, board string) (bool, error) {
			return d.boards.HasStakes(ctx, gameID, board)
		},
	})
	d.usage = usage.New(db, d.games, d.memory, slog.Default())
	d.assets = assets.New(db, d.wallet, assets.Options{
		ReceiptTTL: s.IdempotencyTTL, Quotas: d.games, AdmitNew: d.usage.AdmitNew,
	})
	var keyedHash func(ctx context.Context, label, text string) ([]byte, error)
	if len(s.SigningKeys) > 0 {
		d.auth = auth.New(db, d.users, d.games, signupGrants{d.wallet}, auth.Options{
			SigningKeys: revealKeys(s.SigningKeys), AdminKeys: revealKeys(s.AdminKeys), AllowLoopbackIssuers: isDev,
			AccessTTL: s.AccessTTL,
		})
		keyedHash = d.auth.KeyedHash
	}
	d.prizes = prizes.New(db, d.wallet)
	d.boards = leaderboards.New(db, d.users, d.games, leaderboards.Options{
		AdmitNew: d.usage.AdmitNew, Prizes: d.prizes,
	})
	d.rooms = rooms.New(db, d.wallet, d.users, d.games, rooms.Options{
		Shards: s.RoomShards, Retention: s.RoomRetention, ReceiptTTL: s.IdempotencyTTL,
		AdmitNew: d.usage.AdmitNew, Quotas: roomQuotas(s), CheckMoney: d.wallet.CheckMoney, KeyedHash: keyedHash,
		HasPrizes: d.boards.HasStakes, BoardsConsumer: boardsConsumer(d.boards),
		MatchConsumer: func(ctx context.Context, e rooms.Ended) error { return d.tours.RoomEnded(ctx, e) },
	})
	d.tours = tournaments.New(db, tournaments.Deps{
		Wallets: d.wallet, Players: d.users, Games: d.games, Rooms: d.rooms, Prizes: d.prizes, Boards: d.boards,
	}, tournaments.Options{ReceiptTTL: s.IdempotencyTTL, AdmitNew: d.usage.AdmitNew})
	d.activity = activity.New(db, activity.Games{List: d.listGameIDs, CountOpen: d.rooms.CountOpen})
	return d
}

// listGameIDs is games.Service.List for the operator, of the ids alone.
func (d *domains) listGameIDs(ctx context.Context, after int64, limit int) ([]int64, int64, error) {
	list, next, err := d.games.List(ctx, operator, after, limit)
	gameIDs := make([]int64, len(list))
	for i := range list {
		gameIDs[i] = list[i].ID
	}
	return gameIDs, next, err
}

// admitPlayer returns nil when a game may have a new player, and counts the player.
func (d *domains) admitPlayer(ctx context.Context, gameID int64) error {
	if err := d.usage.AdmitNew(gameID); err != nil {
		return err
	}
	return d.games.CountPlayer(ctx, gameID)
}

// roomQuotas returns what one player may have in rooms.
func roomQuotas(s config.Settings) (none rooms.Quotas) {
	if s.RateLimitsEnabled {
		return rooms.DefaultQuotas()
	}
	return none
}

// requestLimits returns the limits on requests, nil for none.
func requestLimits(s config.Settings) ratelimit.Limits {
	if s.RateLimitsEnabled {
		return ratelimit.DefaultLimits()
	}
	return nil
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
	settings config.Settings // as the node was started; see current
	mode     config.Mode
	log      *slog.Logger

	// current has the settings of now, with those that a reload has changed. load reads them again,
	// and reloads has a value for each time to do so; both are nil where nothing is reloaded.
	current  atomic.Pointer[config.Settings]
	load     func() (config.Settings, error)
	reloads  <-chan os.Signal
	logLevel *slog.LevelVar

	saves       *progress.Service
	webhooks    *webhooks.Service
	idempotency *idempotency.Service

	apiServer *handlers.Server
	limiter   *ratelimit.Limiter
	trail     *trail.Service
	nodes     *nodes.Service
	hub       *realtime.Hub
	presence  *presence.Service
	servers   *servers.Service
	calls     *calls.Service
	monitor   *readiness.Monitor
	history   *history.Service
	archiver  *archiver.Service // nil when nothing leaves the store
}

// newNode returns a node on a store.
func newNode(
	db *redisdb.DB, s config.Settings, mode config.Mode, log *slog.Logger, storeErrors *logs.StoreErrors,
) (*node, error) {
	ledgerArchive, err := openArchive(s)
	if err != nil {
		return nil, err
	}
	n := &node{
		domains: newDomains(db, ledgerArchive, s, mode), settings: s, mode: mode, log: log, logLevel: new(slog.LevelVar),
	}
	n.current.Store(&s)
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	n.monitor = readiness.NewMonitor(db, requirements(s), n.memory, log)
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parlor_store_memory_used_percent",
		Help: "How much of its limit the fullest server of the store uses; above 85 games over their share get nothing new.",
	}, func() float64 { return float64(n.memory.PercentUsed()) }))
	metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "parlor_rooms_parked_total",
		Help: "Ended rooms that this node parked: a leaderboard or a tournament does not take them.",
	}, func() float64 { return float64(n.rooms.DeadLetterCount()) }))
	if ledgerArchive != nil {
		lostIn := func() map[int64]int64 { return n.history.LostIn() } // the history reports to the monitor after it
		n.archiver = archiver.New(db, n.ledgers, archiver.Options{LostIn: lostIn})
		n.reportArchive(metrics)
	}
	n.limiter = ratelimit.New(db, requestLimits(s))
	n.trail = trail.New(db, log)
	n.presence = presence.New(db, presence.Options{Log: log, Grace: s.PresenceGrace})
	n.nodes = n.newNodes()
	n.hub = realtime.New(db, realtime.Options{
		Log: log, OtherServes: n.nodes.OtherServes, Observer: n.presence,
	})
	if err := n.addCalls(metrics); err != nil {
		return nil, err
	}
	n.history = n.newHistory()
	db.ObserveMoney(n.history.Touch)
	db.ObserveEntries(n.history.Acknowledge)
	db.GateMoney(n.allowMoney)
	metrics.MustRegister(&historyCollector{n.history, db}, &clockCollector{db.Clock})
	saves, err := progress.New(db, n.games, n.users, progress.Options{
		SigningKeys: saveKeys(s), AdmitNew: n.usage.AdmitNew, Log: log,
	})
	if err != nil {
		return nil, err
	}
	n.saves = saves
	n.idempotency = idempotency.New(db, revealKeys(s.SigningKeys), idempotency.Options{ResponseTTL: s.IdempotencyTTL})
	n.webhooks = n.newWebhooks(metrics)
	n.apiServer, err = handlers.New(handlers.Deps{
		Users: n.users, Games: n.games, Wallet: n.wallet, Assets: n.assets, Rooms: n.rooms, Auth: n.auth,
		Alarm: n.alarm, Audit: audit.New(db, n.ledgers, n.wallet), Limits: limits.New(db, n.wallet, n.users),
		Boards:      n.boards,
		Tournaments: n.tours,
		Limiter:     n.limiter,
		Idempotency: n.idempotency,
		Readiness:   n.monitor,
		MoneyHalt:   n.moneyHalt,
		Accounts: accounts.New(accounts.Deps{
			Users: n.users, Wallet: n.wallet, Progress: saves, Auth: n.auth, Boards: n.boards,
		}),
		Trail:    n.trail,
		Servers:  n.servers,
		Calls:    n.calls,
		Progress: saves, RealtimeHub: n.hub, Durability: s.Durability, AllowMoney: n.allowMoney,
		TrustedProxies: s.TrustedProxies,
		InternalHosts:  strings.Fields(strings.ToLower(strings.ReplaceAll(s.InternalHosts, ",", " "))),
		Nodes:          n.nodes, Activity: n.activity, Webhooks: n.webhooks,
		ProfilingEnabled: s.ProfilingEnabled, DevPages: mode == config.ModeDev,
		MetricsRegistry: metrics, Log: log,
	})
	if err != nil {
		return nil, err
	}
	n.monitor.OwnOutages(storeErrors, n.apiServer.UnavailableCalls)
	return n, nil
}

// addCalls adds what brings the calls of players to the game's servers.
func (n *node) addCalls(metrics *prometheus.Registry) error {
	n.servers = servers.New(n.db, servers.Options{Log: n.log})
	counts := handlers.NewCallMetrics(metrics)
	n.calls = calls.New(n.hub, n.servers, calls.Options{
		Log: n.log, Channel: n.servers.Channel(), Observe: counts.Observe, ObserveRefused: counts.ObserveRefused,
	})
	return n.hub.Receive(n.servers.Channel(), n.calls.Receive)
}

// confirmingReplicas is the number of replicas that must have a change before it is acknowledged,
// in the mode replica. One more would make every write wait for the slower of two.
const confirmingReplicas = 1

// reportArchive adds the archive to the metrics and to the checks of the node.
func (n *node) reportArchive(metrics *prometheus.Registry) {
	n.monitor.AddChecks(func() []readiness.Check {
		status := n.archiver.Status()
		return []readiness.Check{{Name: "archive", OK: status.OK, Detail: status.Detail}}
	})
	for _, gauge := range []struct {
		name, help string
		read       func(archiver.Status) float64
	}{
		{
			"parlor_archive_lag_entries", "Ledger entries of all games that should have left the store for the archive.",
			func(s archiver.Status) float64 { return float64(s.LagEntries) },
		},
		{
			"parlor_archive_lag_seconds", "For how long the oldest of them has been due.",
			func(s archiver.Status) float64 { return s.Lag.Seconds() },
		},
	} {
		metrics.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: gauge.name, Help: gauge.help}, func() float64 {
				return gauge.read(n.archiver.Status())
			}))
	}
}

// openStore opens the store, and does not wait for it.
func openStore(s config.Settings) (*redisdb.DB, error) {
	db, err := redisdb.Open(cmp.Or(s.RedisURL.Reveal(), redisdb.EmbeddedURL))
	if err == nil && s.Durability == "replica" {
		db.RequireReplicas(confirmingReplicas)
	}
	return db, err
}

// requirements returns what the settings require of the store.
func requirements(s config.Settings) redisdb.Requirements {
	r := redisdb.Requirements{Durable: s.Durability == "disk", FreeShards: s.RoomShards}
	if s.Durability == "replica" {
		r.Replicas = confirmingReplicas
	}
	return r
}

// newLog returns the log of a node and its level, and makes it slog's default and the log of
// go-redis. The node's monitor decides what happens to the lines that it holds back.
func newLog(s config.Settings, to io.Writer) (*slog.Logger, *slog.LevelVar, *logs.StoreErrors) {
	level := new(slog.LevelVar)
	level.Set(s.LogLevel)
	handler, storeErrors := logs.NewStoreErrors(logs.NewHandler(to, level, s.LogFormat == "json"))
	log := slog.New(handler)
	slog.SetDefault(log)
	redisdb.SetLogger(log)
	return log, level, storeErrors
}
