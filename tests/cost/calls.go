package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/scripts"
)

// call is one method of a domain that is counted.
type call struct {
	name    string
	promise string // what is paid for, one sentence
	keyUse  keyUse
	isRead  bool    // the method runs no script: all of its commands are counted
	status  string  // of the script's reply; "" means scripts.OK
	most    int     // calls to count, for a row that takes long to prepare; 0 for as many as of the others
	limit   float64 // of the ceiling, in thousand instructions without AOF; 0 for none

	// prepare prepares the i-th call; it is not counted. nil for nothing to prepare.
	prepare func(ctx context.Context, s *stage, i int) error
	// run makes the i-th call.
	run func(ctx context.Context, s *stage, i int) error
}

// keyUse is whether a method is counted with an Idempotency-Key, without, or both.
type keyUse int

const (
	withAndWithoutKey keyUse = iota
	neverKeyed
	alwaysKeyed
)

// row is one line of the report: a call with or without a key.
type row struct {
	call
	keyed bool
}

func (r row) title() string {
	if r.keyed && r.keyUse == withAndWithoutKey {
		return r.name + ", with a key"
	}
	return r.name
}

// callRows returns the rows in the order in which they are counted.
func callRows() []row {
	var rows []row
	for _, keyed := range []bool{false, true} {
		for _, c := range slices.Concat(calls, competitionCalls) {
			if c.keyUse == withAndWithoutKey || keyed == (c.keyUse == alwaysKeyed) {
				rows = append(rows, row{c, keyed})
			}
		}
	}
	return rows
}

// stage is what the calls of all rows find: for each i a room, the roomSeats players from host(i)
// on, and the receipt of a purchase.
type stage struct {
	*fixture
	keyed          bool
	roomIDs        []string
	bigRooms       []string // room ids
	consensusRooms []string // room ids
	fedRooms       []string // room ids, of rooms that feed the game's server
	receipts       []idempotency.Receipt

	competitionStage
}

// newStage returns the stage of n calls of each row.
func newStage(f *fixture, n int) *stage {
	return &stage{
		fixture: f, roomIDs: make([]string, n), bigRooms: make([]string, n), consensusRooms: make([]string, n),
		fedRooms: make([]string, n),
		receipts: make([]idempotency.Receipt, n),
	}
}

func hostIndex(i int) int { return i * roomSeats }

// nextReceipt returns the receipt of a new request, with a key if the row has one.
func (s *stage) nextReceipt() idempotency.Receipt {
	if s.keyed {
		return newReceipt()
	}
	return noReceipt
}

func (s *stage) joinSeat(ctx context.Context, i, seat int) error {
	return s.join(ctx, s.player(hostIndex(i)+seat-1), s.roomIDs[i], s.nextReceipt())
}

// calls lists what is counted. The rooms live through the rows from create to finish.
var calls = []call{
	{
		name:  "create, paid room of 8",
		limit: 320,
		promise: "The room, its code, its index entries and its due time exist, and the creator's stake is in escrow, " +
			"or nothing has changed.",
		run: func(ctx context.Context, s *stage, i int) error {
			_, err := s.create(ctx, s.player(hostIndex(i)), roomSeats, s.nextReceipt())
			return err
		},
	},
	{
		name: "join at seat 2",
		promise: "The seat is taken, the stake is in escrow, the ledger and the player's lines have it, and the room " +
			"and the player are notified, in one step.",
		prepare: func(ctx context.Context, s *stage, i int) error {
			room, err := s.create(ctx, s.player(hostIndex(i)), roomSeats, s.nextReceipt())
			s.roomIDs[i] = room.RoomID
			return err
		},
		run: func(ctx context.Context, s *stage, i int) error { return s.joinSeat(ctx, i, 2) },
	},
	{
		name:    "join at seat 8",
		limit:   230,
		promise: "The same as at seat 2; what it costs more is the price of the players who are seated already.",
		prepare: func(ctx context.Context, s *stage, i int) error {
			for seat := 3; seat < roomSeats; seat++ {
				if err := s.joinSeat(ctx, i, seat); err != nil {
					return err
				}
			}
			return nil
		},
		run: func(ctx context.Context, s *stage, i int) error { return s.joinSeat(ctx, i, roomSeats) },
	},
	{
		name:    fmt.Sprintf("join at seat %d", manySeatsCount),
		promise: "The same again: a seat does not pay for those before it.",
		keyUse:  neverKeyed,
		most:    10,
		prepare: func(ctx context.Context, s *stage, i int) (err error) {
			s.bigRooms[i], err = s.fillSeats(ctx, manySeatsCount, manySeatsCount-1)
			return err
		},
		run: func(ctx context.Context, s *stage, i int) error {
			return s.join(ctx, s.player(manySeatsCount-1), s.bigRooms[i], noReceipt)
		},
	},
	{
		name:    "get a room of 8",
		promise: "A reader sees the room as one script left it.",
		keyUse:  neverKeyed,
		isRead:  true,
		run: func(ctx context.Context, s *stage, i int) error {
			_, err := s.rooms.Get(ctx, s.player(hostIndex(i)), s.roomIDs[i])
			return err
		},
	},
	{
		name:    "leave at 8",
		promise: "The seat is free, the stake is back in the wallet, and the room has a host.",
		run: func(ctx context.Context, s *stage, i int) error {
			return s.leave(ctx, s.player(hostIndex(i)+roomSeats-1), s.roomIDs[i], s.nextReceipt())
		},
	},
	{
		name:    "start at 8",
		limit:   180,
		promise: "The stakes are locked, and nobody joins any more.",
		prepare: func(ctx context.Context, s *stage, i int) error { return s.joinSeat(ctx, i, roomSeats) },
		run: func(ctx context.Context, s *stage, i int) error {
			return s.start(ctx, s.player(hostIndex(i)), s.roomIDs[i], s.nextReceipt())
		},
	},
	{
		name:  "finish of 8",
		limit: 750,
		promise: "The whole pot is paid out once, each of the 8 players has a line and a message, and the result is " +
			"in the room.",
		run: func(ctx context.Context, s *stage, i int) error {
			return s.finish(ctx, hostIndex(i), s.roomIDs[i], s.nextReceipt())
		},
	},
	{
		name:    "join at seat 8, with a feed",
		promise: "The same as at seat 8, and the game's server hears it, also when it was away.",
		keyUse:  neverKeyed,
		prepare: func(ctx context.Context, s *stage, i int) (err error) {
			s.fedRooms[i], err = s.fillFed(ctx, hostIndex(i))
			return err
		},
		run: func(ctx context.Context, s *stage, i int) error {
			return s.join(ctx, s.player(hostIndex(i)+roomSeats-1), s.fedRooms[i], noReceipt)
		},
	},
	{
		name:    "start at 8, with a feed",
		promise: "The same as start at 8, and the game's server hears it, also when it was away.",
		keyUse:  neverKeyed,
		run: func(ctx context.Context, s *stage, i int) error {
			return s.start(ctx, s.player(hostIndex(i)), s.fedRooms[i], noReceipt)
		},
	},
	{
		name:    "finish of 8, with a feed",
		promise: "The same as finish of 8, and the game's server hears it, also when it was away.",
		keyUse:  neverKeyed,
		run: func(ctx context.Context, s *stage, i int) error {
			return s.finish(ctx, hostIndex(i), s.fedRooms[i], noReceipt)
		},
	},
	{
		name:    "report in a room of 8",
		promise: "What the player saw is in the room, cannot be changed, and the others know that there is a report.",
		keyUse:  alwaysKeyed,
		prepare: func(ctx context.Context, s *stage, i int) (err error) {
			s.consensusRooms[i], err = s.startConsensus(ctx, hostIndex(i))
			return err
		},
		run: func(ctx context.Context, s *stage, i int) error {
			return s.report(ctx, hostIndex(i), 0, s.consensusRooms[i], s.nextReceipt())
		},
	},
	{
		name: "report that settles a room of 8",
		promise: "All players have reported the same, and what finish does has happened, by the word of no one player: " +
			"the script compares the reports with what the node saw.",
		keyUse: alwaysKeyed,
		prepare: func(ctx context.Context, s *stage, i int) error {
			for seat := 1; seat < roomSeats-1; seat++ {
				if err := s.report(ctx, hostIndex(i), seat, s.consensusRooms[i], s.nextReceipt()); err != nil {
					return err
				}
			}
			return nil
		},
		run: func(ctx context.Context, s *stage, i int) error {
			return s.report(ctx, hostIndex(i), roomSeats-1, s.consensusRooms[i], s.nextReceipt())
		},
	},
	{
		name:    "purchase",
		limit:   190,
		promise: "The price is paid, the asset is owned, and stock and limit hold, in one step.",
		run: func(ctx context.Context, s *stage, i int) error {
			return s.buy(ctx, s.player(hostIndex(i)), s.nextReceipt())
		},
	},
	{
		name:    "replay of a purchase",
		promise: "A repeated request gets the first reply and has no second effect.",
		keyUse:  alwaysKeyed,
		status:  scripts.Replay,
		prepare: func(ctx context.Context, s *stage, i int) error {
			s.receipts[i] = newReceipt()
			return s.buy(ctx, s.player(hostIndex(i)), s.receipts[i])
		},
		run: func(ctx context.Context, s *stage, i int) error {
			return s.buy(ctx, s.player(hostIndex(i)), s.receipts[i])
		},
	},
	{
		name:    "credit",
		limit:   160,
		promise: "The amount is minted into the wallet, and the ledger, the totals and the player know it.",
		run: func(ctx context.Context, s *stage, i int) error {
			return s.credit(ctx, s.player(hostIndex(i)), "12.50", s.nextReceipt())
		},
	},
	{
		name:    "take from a rate limit",
		promise: "All nodes together give no more permits than the limit has.",
		keyUse:  neverKeyed,
		run: func(ctx context.Context, s *stage, i int) error {
			// A limiter that failed once does not ask the store for a second, and holding a script back is a
			// failure.
			limiter := ratelimit.New(s.db, ratelimit.DefaultLimits())
			_, err := limiter.Allow(ctx, ratelimit.SignIn, s.player(hostIndex(i)).ActorID()) // the class without a share
			return err
		},
	},
}
