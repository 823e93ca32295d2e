package redisdb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/redis/go-redis/v9"
)

// Prober writes to every master, to find out which masters accept writes and provide the durability
// that the installation promises. One goroutine at a time may use it.
type Prober struct {
	db       *DB
	required Requirements
	masters  []probedMaster // of a Cluster, as it was read last

	mu     sync.Mutex
	replay map[string]replayAnswer // by the name of the master
}

// replayAnswer is what a server said about reading back its append-only file.
type replayAnswer struct {
	runID    string // of the process that said it
	at       time.Time
	problems []string
}

// replayInterval is how long an answer is believed: a person may change users at any time, and
// rarely does.
const replayInterval = 15 * time.Second

// NewProber returns a prober of the store.
func (db *DB) NewProber(required Requirements) *Prober {
	return &Prober{db: db, required: required, replay: map[string]replayAnswer{}}
}

// MasterHealth is what a probe found out about one master.
type MasterHealth struct {
	Name          string // "store", in a Cluster "store:0-5460" by its first slots
	OK            bool   // a write succeeded, and the master keeps what the mode promises
	Detail        string // a sentence without an address, for anyone to read
	Cause         error  // nil when the write succeeded
	Keeps         Promise
	History       string // id of what the server writes on; another one after a failover or a restart
	Reached       bool   // the two below are known; never of the embedded store
	MemoryPercent int    // memory in use, of maxmemory or else of 80 % of the machine's
	HasMaxMemory  bool
	Clock         ClockReading // without a Time when the master did not report it
}

// Promise is what an acknowledged change survives at this moment; a setting names one too.
type Promise string

// The promises, the weakest first. A replica has the change besides.
const (
	KeepsMemory  Promise = "memory"  // nothing
	KeepsDisk    Promise = "disk"    // the end of the server, and of its machine as its appendfsync says
	KeepsReplica Promise = "replica" // the loss of the server
)

// IsWeakerThan reports whether a change that keeps p may be lost where one that keeps q is not.
func (p Promise) IsWeakerThan(q Promise) bool {
	order := []Promise{KeepsMemory, KeepsDisk, KeepsReplica}
	return slices.Index(order, p) < slices.Index(order, q)
}

// probedMaster is one master of a Cluster and a key that is stored there.
type probedMaster struct {
	name string
	key  string
}

// probeKeyTTL is how long a probe stays in the store.
const probeKeyTTL = time.Minute

// Probe probes all masters at once. They have until ctx ends.
func (p *Prober) Probe(ctx context.Context) []MasterHealth {
	cluster, ok := p.db.Client.(*redis.ClusterClient)
	if !ok {
		client := p.db.Client.(*redis.Client)
		return []MasterHealth{p.probe(ctx, client, keys.Probe("p"), "store")}
	}
	if p.masters == nil {
		masters, err := readMasters(ctx, cluster)
		if err != nil {
			return []MasterHealth{failedProbe("store", err)}
		}
		p.masters = masters
	}
	// A master that hangs may be the one that is asked for the slots: the probes do not wait for that.
	var probes sync.WaitGroup
	var next []probedMaster
	probes.Go(func() { next, _ = readMasters(ctx, cluster) })
	health := make([]MasterHealth, len(p.masters))
	for i, m := range p.masters {
		probes.Go(func() {
			master, err := cluster.MasterForKey(ctx, m.key)
			if err != nil {
				health[i] = failedProbe(m.name, err)
				return
			}
			health[i] = p.probe(ctx, master, m.key, m.name)
		})
	}
	probes.Wait()
	if next != nil {
		p.masters = next
	}
	if slices.ContainsFunc(health, func(h MasterHealth) bool { return !h.OK }) {
		cluster.ReloadState(ctx) // a replica may have taken its place
	}
	return health
}

// probe writes to one server and reads in the same round trip what it promises.
func (p *Prober) probe(ctx context.Context, server *redis.Client, key, name string) MasterHealth {
	pipeline := server.Pipeline()
	clock := pipeline.Time(ctx)
	write := pipeline.Set(ctx, key, 1, probeKeyTTL)
	var info *redis.StringCmd
	if p.db.kind != KindEmbedded { // has no INFO
		info = pipeline.Info(ctx)
	}
	reading := ClockReading{Master: name, Sent: p.db.Clock.Elapsed()}
	_, err := pipeline.Exec(ctx)
	reading.Received = p.db.Clock.Elapsed()
	if clock.Err() == nil {
		reading.Time = clock.Val()
	}
	var health MasterHealth
	if info == nil || info.Err() != nil {
		health = p.assess(name, err, nil, nil)
	} else {
		read := parseInfo(info.Val())
		health = p.assess(name, write.Err(), read, p.checkReplay(ctx, server, name, read))
	}
	health.Clock = reading
	return health
}

// checkReplay is the function of that name, asked once in a while and of each new process.
func (p *Prober) checkReplay(ctx context.Context, server *redis.Client, name string, info map[string]string) []string {
	p.mu.Lock()
	last := p.replay[name]
	p.mu.Unlock()
	isSame := last.runID == info["run_id"]
	if isSame && time.Since(last.at) < replayInterval {
		return last.problems
	}
	problems, err := checkReplay(ctx, server, info)
	if err != nil { // the next probe asks again
		if isSame {
			return last.problems
		}
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replay[name] = replayAnswer{runID: info["run_id"], at: time.Now(), problems: problems}
	return problems
}

// assess returns the health of a master from the result of a write, its INFO, nil when that is not
// known, and what keeps it from reading back its append-only file.
func (p *Prober) assess(name string, err error, info map[string]string, replay []string) MasterHealth {
	h := MasterHealth{Name: name, Keeps: KeepsMemory}
	if h.Reached = info != nil; h.Reached {
		h.MemoryPercent, h.HasMaxMemory = memoryInUse(info)
		h.Keeps, h.History = keptPromise(info, p.required, replay), info["master_replid"]+" "+info["run_id"]
	}
	// A full store still accepts changes that end something, pay it back or free memory.
	if err != nil && serverErrorCode(err) != apierror.StoreFull {
		failed := failedProbe(name, err)
		h.Detail, h.Cause = failed.Detail, failed.Cause
		return h
	}
	if info != nil {
		problems := slices.Concat(checkInfo(info, p.required), checkPromise(info, p.required), replay)
		if role := info["role"]; role != "master" {
			problems = append(problems, fmt.Sprintf("is a replica (role %q)", role))
		}
		if len(problems) > 0 {
			h.Detail = "the store " + strings.Join(problems, "; it ")
			return h
		}
	}
	h.OK, h.Detail = true, "takes writes"
	return h
}

// checkPromise returns the problems for which a server does not keep its promise now, of those
// that may pass by themselves. A node waits until they have passed, and does not exit.
func checkPromise(info map[string]string, required Requirements) (problems []string) {
	if required.Durable && info["aof_enabled"] == "1" && info["aof_last_write_status"] != "ok" {
		problems = append(problems, "cannot write its append-only file")
	}
	if n := countReplicas(info); n < required.Replicas {
		problems = append(problems, fmt.Sprintf("has %d of %d replicas in step, so that nobody confirms a change; "+
			"connect a replica", n, required.Replicas))
	}
	return problems
}

// keptPromise returns the durability of a change on the server, at most the required one. A server
// that cannot read back its file provides none, because after a restart its replicas copy its loss.
func keptPromise(info map[string]string, required Requirements, replay []string) Promise {
	switch {
	case len(replay) > 0:
		return KeepsMemory
	case required.Replicas > 0 && countReplicas(info) >= required.Replicas:
		return KeepsReplica
	case (required.Replicas > 0 || required.Durable) && info["aof_enabled"] == "1" &&
		info["aof_last_write_status"] == "ok":
		return KeepsDisk
	default:
		return KeepsMemory
	}
}

// ReadPromise returns the current durability of acknowledged changes: the weakest of all masters,
// at most the required one. It writes nothing. It returns store_unavailable.
func (db *DB) ReadPromise(ctx context.Context, required Requirements) (Promise, error) {
	var least Promise
	err := db.inspectServers(ctx, func(_ string, info map[string]string, replay []string) {
		if kept := keptPromise(info, required, replay); least == "" || kept.IsWeakerThan(least) {
			least = kept
		}
	})
	return cmp.Or(least, KeepsMemory), WrapError("read what the store keeps", err)
}

// maxReplicaLag is for how many seconds a replica that is in step may be silent. Replicas report
// every second.
const maxReplicaLag = 3

// countReplicas returns how many replicas of a server follow it.
func countReplicas(info map[string]string) (count int) {
	for n := 0; ; n++ {
		line, ok := info["slave"+strconv.Itoa(n)] // ip=…,port=…,state=online,offset=…,lag=1
		if !ok {
			return count
		}
		_, text, _ := strings.Cut(line, ",lag=")
		lag, err := strconv.Atoi(text)
		if err == nil && lag <= maxReplicaLag && strings.Contains(line, ",state=online,") {
			count++
		}
	}
}

func failedProbe(name string, err error) MasterHealth {
	detail := "does not answer"
	if code := serverErrorWord(err); code != "" {
		detail = "refuses writes: " + code
	}
	return MasterHealth{Name: name, Keeps: KeepsMemory, Detail: detail, Cause: WrapError("write to "+name, err)}
}

// readMasters returns the masters of a Cluster by their slots.
func readMasters(ctx context.Context, cluster *redis.ClusterClient) ([]probedMaster, error) {
	//lint:ignore SA1019 the client reads the slots in the same way, and they must agree
	ranges, err := cluster.ClusterSlots(ctx).Result()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(ranges, func(a, b redis.ClusterSlot) int { return cmp.Compare(a.Start, b.Start) })
	seen := map[string]bool{}
	var masters []probedMaster
	for _, r := range ranges {
		if len(r.Nodes) == 0 || seen[r.Nodes[0].Addr] {
			continue
		}
		seen[r.Nodes[0].Addr] = true
		name := fmt.Sprintf("store:%d-%d", r.Start, r.End)
		masters = append(masters, probedMaster{name, probeKeyInSlots(r.Start, r.End)})
	}
	return masters, nil
}

// probeKeyInSlots returns a probe's key in a range of slots.
func probeKeyInSlots(first, last int) string {
	for n := 0; ; n++ {
		tag := "p" + strconv.Itoa(n)
		if slot := slotOf(tag); first <= slot && slot <= last {
			return keys.Probe(tag)
		}
	}
}

// slotOf returns the slot of a hash tag: its CRC-16 (XMODEM) modulo the number of slots, as in the
// specification of Redis Cluster.
func slotOf(tag string) int {
	const polynomial = 0x1021
	var crc uint16
	for _, b := range []byte(tag) {
		crc ^= uint16(b) << 8
		for range 8 {
			high := crc & 0x8000
			crc <<= 1
			if high != 0 {
				crc ^= polynomial
			}
		}
	}
	return int(crc) % slotCount
}

// SpreadTags returns count hash tags that start with a prefix, each in another part of the slots.
func SpreadTags(prefix string, count int) []string {
	tags := make([]string, count)
	for i := range tags {
		first, last := i*slotCount/count, (i+1)*slotCount/count-1
		for n := 0; tags[i] == ""; n++ {
			tag := prefix + strconv.Itoa(n)
			if slot := slotOf(tag); first <= slot && slot <= last {
				tags[i] = tag
			}
		}
	}
	return tags
}
