package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/redis/go-redis/v9"
)

// size is one figure of memory, measured on an empty store.
type size struct {
	name    string
	unit    string  // of the figure
	promise string  // what is kept for it, one sentence
	limit   float64 // of the ceiling, in the unit; 0 for none
	measure func(ctx context.Context, s *sizing) (float64, error)
}

const unitBytes = "bytes"

// sizing is an empty store on which one size is measured.
type sizing struct {
	*fixture
	client *redis.Client // of one connection
}

const (
	measuredRoomCount   = 200
	measuredWalletCount = 1_000
	passerByCount       = 1_200
	manySeatsCount      = 256
)

var (
	paidRooms     = keys.EconomyShard(anyGame)
	walletPrefix  = strings.TrimSuffix(keys.Wallet(anyGame, 0), "0")
	receiptPrefix = strings.TrimSuffix(keys.RoomReceipt(paidRooms, "", ""), ":")
	creditPrefix  = keys.RoomReceipt(paidRooms, operator.ActorID(), "")
)

func isOfWallet(key string) bool { return strings.HasPrefix(key, walletPrefix) }
func isOfLedger(key string) bool { return key == keys.Ledger(anyGame) }

// isReceipt reports whether a key is the receipt of a player's or the server's request.
func isReceipt(key string) bool {
	return strings.HasPrefix(key, receiptPrefix) && !strings.HasPrefix(key, creditPrefix)
}

// isOfRoom reports whether a key is there for a room. Wallets, the ledger and the receipts of
// credits are not: they have rows of their own.
func isOfRoom(key string) bool {
	return !isOfWallet(key) && !isOfLedger(key) && !strings.HasPrefix(key, creditPrefix)
}

// sizeArgs are quietArgs without the statistics that the first command of a kind allocates.
var sizeArgs = append(slices.Clone(quietArgs), "--latency-tracking", "no")

// keyMatch reports whether a key belongs to what is measured.
type keyMatch func(key string) bool

// sizes lists what is measured.
var sizes = []size{
	{
		name: "open paid room of 8 with its receipts", unit: unitBytes,
		limit:   8 << 10,
		promise: "Room, events, code, index entries and the receipts of 8 requests with a key are there at once.",
		measure: func(ctx context.Context, s *sizing) (float64, error) {
			used, err := s.measureUsed(ctx, isOfRoom, func(i int) error { return s.fillRoom(ctx, i) }, measuredRoomCount)
			return used / measuredRoomCount, err
		},
	},
	{
		name: "ended room of 8 with its receipts", unit: unitBytes,
		promise: "The room can be read and its requests be repeated for 24 hours, its events be resumed for 10 minutes.",
		measure: func(ctx context.Context, s *sizing) (float64, error) {
			used, err := s.measureUsed(ctx, isOfRoom, func(i int) error { return s.playRoom(ctx, i) }, measuredRoomCount)
			return used / measuredRoomCount, err
		},
	},
	{
		name: "ended room of 8 with its receipts, after 10 minutes", unit: unitBytes,
		limit:   6 << 10,
		promise: "The same once its events are let go.",
		measure: func(ctx context.Context, s *sizing) (float64, error) {
			isKept := func(key string) bool { _, isEvents := keys.ParseRoomEvents(key); return isOfRoom(key) && !isEvents }
			used, err := s.measureUsed(ctx, isKept, func(i int) error { return s.playRoom(ctx, i) }, measuredRoomCount)
			return used / measuredRoomCount, err
		},
	},
	{
		name: "player's wallet with one line", unit: unitBytes,
		limit:   600,
		promise: "A player with one token has a balance, a history and an event, which are found without a search.",
		measure: func(ctx context.Context, s *sizing) (float64, error) {
			used, err := s.measureUsed(ctx, isOfWallet, func(i int) error {
				return s.credit(ctx, s.player(i), "100000", noReceipt)
			}, measuredWalletCount)
			return used / measuredWalletCount, err
		},
	},
	{
		name: "ledger entry", unit: unitBytes,
		promise: "Each change of money has one entry for ever; this is the mean of credits and stakes.",
		measure: func(ctx context.Context, s *sizing) (float64, error) {
			used, err := s.measureUsed(ctx, isOfLedger, func(i int) error { return s.fillRoom(ctx, i) }, measuredRoomCount)
			return used / (2 * roomSeats * measuredRoomCount), err // a credit and a stake of each player
		},
	},
	{
		name: "receipt of a seat", unit: unitBytes,
		promise: "A request with a key that is repeated within 24 hours gets the first reply; mean over seats 1 to 8.",
		measure: func(ctx context.Context, s *sizing) (float64, error) {
			used, err := s.measureUsed(ctx, isReceipt, func(i int) error { return s.fillRoom(ctx, i) }, measuredRoomCount)
			return used / (roomSeats * measuredRoomCount), err
		},
	},
	{
		name: "largest value of a receipt", unit: unitBytes,
		limit:   100,
		promise: "A receipt holds an outcome and no room: of create, join, leave, start, finish, purchase and credit.",
		measure: func(ctx context.Context, s *sizing) (float64, error) {
			if err := s.makeReceipts(ctx); err != nil {
				return 0, err
			}
			return s.largestReceipt(ctx)
		},
	},
	{
		name: fmt.Sprintf("fields of a room after %d passers-by", passerByCount), unit: "fields",
		limit:   24,
		promise: "A room does not grow with those who come and go.",
		measure: func(ctx context.Context, s *sizing) (float64, error) {
			id, err := s.passBy(ctx)
			if err != nil {
				return 0, err
			}
			n, err := s.client.HLen(ctx, keys.Room(paidRooms, id)).Result()
			return float64(n), err
		},
	},
	{
		name: fmt.Sprintf("room after %d passers-by, with its events", passerByCount), unit: unitBytes,
		promise: "The same in bytes; the events are bounded by their number.",
		measure: func(ctx context.Context, s *sizing) (float64, error) {
			id, err := s.passBy(ctx)
			if err != nil {
				return 0, err
			}
			return s.sumMemory(ctx, func(key string) bool { return strings.Contains(key, id) })
		},
	},
	{
		name: fmt.Sprintf("events of a room after filling %d seats", manySeatsCount), unit: unitBytes,
		limit:   100 << 10,
		promise: "Each event is kept once, so that a client that was away misses none.",
		measure: func(ctx context.Context, s *sizing) (float64, error) {
			id, err := s.fillManySeats(ctx)
			if err != nil {
				return 0, err
			}
			n, err := s.client.MemoryUsage(ctx, keys.RoomEvents(paidRooms, id), 0).Result()
			return float64(n), err
		},
	},
}

// measureSizes measures every size, each on a store of its own.
func measureSizes(ctx context.Context) (map[string]float64, error) {
	figures := map[string]float64{}
	for _, row := range sizes {
		n, err := measureSize(ctx, row)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.name, err)
		}
		figures[row.name] = n
	}
	return figures, nil
}

func measureSize(ctx context.Context, row size) (float64, error) {
	server, err := redistest.Start(sizeArgs...)
	if err != nil {
		return 0, err
	}
	defer server.Remove()
	f, err := newFixture(ctx, server.URL(), anyGame)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.db.Close() }()
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: server.Socket, PoolSize: 1})
	defer func() { _ = client.Close() }()
	return row.measure(ctx, &sizing{fixture: f, client: client})
}

// fillRoom credits the players of room i and seats them, with keys.
func (s *sizing) fillRoom(ctx context.Context, i int) error {
	_, err := s.seatAll(ctx, i)
	return err
}

func (s *sizing) seatAll(ctx context.Context, i int) (roomID string, err error) {
	for seat := range roomSeats {
		if err := s.credit(ctx, s.player(hostIndex(i)+seat), "100000", noReceipt); err != nil {
			return "", err
		}
	}
	room, err := s.create(ctx, s.player(hostIndex(i)), roomSeats, newReceipt())
	if err != nil {
		return "", err
	}
	for seat := 1; seat < roomSeats; seat++ {
		if err := s.join(ctx, s.player(hostIndex(i)+seat), room.RoomID, newReceipt()); err != nil {
			return "", err
		}
	}
	return room.RoomID, nil
}

// playRoom is fillRoom, start and finish.
func (s *sizing) playRoom(ctx context.Context, i int) error {
	id, err := s.seatAll(ctx, i)
	if err != nil {
		return err
	}
	if err := s.start(ctx, s.player(hostIndex(i)), id, newReceipt()); err != nil {
		return err
	}
	return s.finish(ctx, hostIndex(i), id, newReceipt())
}

// fillManySeats opens a room of manySeatsCount seats and fills it.
func (s *sizing) fillManySeats(ctx context.Context) (roomID string, err error) {
	if err := s.creditAll(ctx, manySeatsCount); err != nil {
		return "", err
	}
	return s.fillSeats(ctx, manySeatsCount, manySeatsCount)
}

// passBy opens a room that many players join and leave.
func (s *sizing) passBy(ctx context.Context) (roomID string, err error) {
	if err := s.creditAll(ctx, passerByCount+1); err != nil {
		return "", err
	}
	room, err := s.create(ctx, s.player(0), roomSeats, noReceipt)
	if err != nil {
		return "", err
	}
	for i := range passerByCount {
		if err := s.join(ctx, s.player(1+i), room.RoomID, noReceipt); err != nil {
			return "", err
		}
		if err := s.leave(ctx, s.player(1+i), room.RoomID, noReceipt); err != nil {
			return "", err
		}
	}
	return room.RoomID, nil
}

// makeReceipts makes one request of each kind with a key.
func (s *sizing) makeReceipts(ctx context.Context) error {
	if err := s.playRoom(ctx, 0); err != nil {
		return err
	}
	room, err := s.create(ctx, s.player(0), roomSeats, newReceipt())
	return errors.Join(err, s.join(ctx, s.player(1), room.RoomID, newReceipt()),
		s.leave(ctx, s.player(1), room.RoomID, newReceipt()),
		s.buy(ctx, s.player(0), newReceipt()), s.credit(ctx, s.player(0), "12.50", newReceipt()))
}

func (s *sizing) largestReceipt(ctx context.Context) (float64, error) {
	names, err := s.client.Keys(ctx, receiptPrefix+"*").Result()
	if err != nil {
		return 0, err
	}
	largest := int64(0)
	for _, name := range names {
		n, err := s.client.StrLen(ctx, name).Result()
		if err != nil {
			return 0, err
		}
		largest = max(largest, n)
	}
	return float64(largest), nil
}

// measureUsed returns the bytes of used_memory that n calls of fill leave behind in the keys that
// match.
func (s *sizing) measureUsed(ctx context.Context, match keyMatch, fill func(i int) error, n int) (float64, error) {
	base, err := s.client.Keys(ctx, "*").Result()
	if err != nil {
		return 0, err
	}
	base = append(base, keys.Totals(anyGame))
	keepOnly := func() error {
		return s.deleteOthers(ctx, func(key string) bool { return match(key) || slices.Contains(base, key) })
	}
	// The first call compiles the scripts and pays for the first page of ledger and indexes.
	if err := errors.Join(fill(n), keepOnly()); err != nil {
		return 0, err
	}
	before, err := s.usedMemory(ctx)
	if err != nil {
		return 0, err
	}
	for i := range n {
		if err := fill(i); err != nil {
			return 0, err
		}
	}
	if err := keepOnly(); err != nil {
		return 0, err
	}
	after, err := s.usedMemory(ctx)
	return after - before, err
}

// deleteOthers deletes the keys that do not match.
func (s *sizing) deleteOthers(ctx context.Context, match keyMatch) error {
	names, err := s.client.Keys(ctx, "*").Result()
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, match)
	for batch := range slices.Chunk(names, 100) {
		if err := s.client.Del(ctx, batch...).Err(); err != nil {
			return err
		}
	}
	return nil
}

// A table of keys has a power of two of slots of 8 bytes. It doubles when each slot has a key, and
// halves at some time after nine of ten are empty, so its size depends on the keys that there were
// before. A table that only grows has one to two slots for each key, so a key counts as 1.5 slots.
const (
	slotBytes        = 12
	keyEntryBytes    = 24 + 16 + slotBytes // the entry and the value's header, as MEMORY STATS counts them
	expiryEntryBytes = 24 + slotBytes      // the same key in the table of those that expire
)

// usedMemory returns the bytes that the store has allocated, with the mean of slots for each key.
// It closes all other connections first, whose buffers would count.
func (s *sizing) usedMemory(ctx context.Context) (float64, error) {
	fresh := redis.NewClient(&redis.Options{Network: "unix", Addr: s.client.Options().Addr, PoolSize: 1})
	defer func() { _ = fresh.Close() }()
	if err := fresh.ClientKillByFilter(ctx, "TYPE", "normal").Err(); err != nil {
		return 0, err
	}
	keyspace, err := fresh.Info(ctx, "keyspace").Result()
	if err != nil {
		return 0, err
	}
	var keyCount, expiryCount int64
	if _, line, isFilled := strings.Cut(keyspace, "db0:"); isFilled {
		if _, err := fmt.Sscanf(line, "keys=%d,expires=%d,", &keyCount, &expiryCount); err != nil {
			return 0, err
		}
	}
	reply, err := fresh.Do(ctx, "memory", "stats").Result()
	if err != nil {
		return 0, err
	}
	stats, _ := reply.(map[any]any)
	tables, _ := stats["db.0"].(map[any]any)
	used, _ := stats["total.allocated"].(int64)
	keyTable, _ := tables["overhead.hashtable.main"].(int64)
	expiryTable, _ := tables["overhead.hashtable.expires"].(int64)
	return float64(used - keyTable - expiryTable + keyCount*keyEntryBytes + expiryCount*expiryEntryBytes), nil
}

// sumMemory returns the sum of MEMORY USAGE over the keys that match.
func (s *sizing) sumMemory(ctx context.Context, match keyMatch) (sum float64, err error) {
	names, err := s.client.Keys(ctx, "*").Result()
	if err != nil {
		return 0, err
	}
	for _, name := range slices.DeleteFunc(names, func(key string) bool { return !match(key) }) {
		n, err := s.client.MemoryUsage(ctx, name, 0).Result()
		if err != nil {
			return 0, err
		}
		sum += float64(n)
	}
	return sum, nil
}
