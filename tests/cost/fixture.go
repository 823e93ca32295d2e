package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/secret"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/domaintest"
)

const (
	roomSeats = 8 // seats of a room, unless a row says otherwise
	// firstPlayer is large, so that ids have as many digits as those of a busy installation.
	firstPlayer = 1_000_001
)

var operator = domaintest.Operator

// anyGame is the game of a fixture whose game does not matter.
const anyGame = 3

// fixture is the domains on one store, with one game, one token and one asset. Players, profiles
// and the game come from memory, as they do from the caches of a node.
type fixture struct {
	*domaintest.Players
	db       *redisdb.DB
	recorder *recorder
	wallet   *wallet.Service
	rooms    *rooms.Service
	assets   *assets.Service
	gold     wallet.Token
	sword    assets.Asset

	competitions
}

func newFixture(ctx context.Context, url string, gameID int64) (*fixture, error) {
	db, err := redisdb.Open(url)
	if err != nil {
		return nil, err
	}
	f := &fixture{Players: domaintest.NewPlayers(gameID), db: db, recorder: &recorder{}}
	f.NamePrefix, f.Settings.Settlements = "Player ", []games.Settlement{games.SettledByServer, games.SettledByConsensus}
	db.Client.AddHook(f.recorder)
	f.wallet = wallet.New(db, f, wallet.Options{})
	f.rooms = rooms.New(db, f.wallet, f, f, rooms.Options{Shards: 64, KeyedHash: domaintest.KeyedHash})
	f.assets = assets.New(db, f.wallet, assets.Options{})
	f.startCompetitions(db)
	f.gold, err = f.wallet.CreateToken(ctx, operator, wallet.TokenDefinition{
		Code: "GOLD", Name: "Gold", Metadata: wallet.Metadata{AssetName: "67", PolicyID: "ab", Decimals: "2"},
	})
	if errors.Is(err, apierror.TokenCodeTaken) { // of another fixture on this store
		f.gold, err = f.wallet.FindToken(ctx, gameID, "GOLD")
	}
	if err != nil {
		return nil, err
	}
	f.sword, err = f.assets.Create(ctx, operator, gameID, assets.CreateInput{
		Name: "Golden sword", TokenCode: f.gold.Code, Price: "0.75",
	})
	return f, err
}

// Find finds every game: a store may have those of other fixtures.
func (f *fixture) Find(_ context.Context, id int64) (games.Game, error) {
	return games.Game{ID: id, Settings: f.Settings}, nil
}

// player returns the n-th player.
func (f *fixture) player(n int) principal.Caller {
	return f.Player(int64(firstPlayer + n))
}

var noReceipt idempotency.Receipt

// newReceipt returns the receipt of a request with a new Idempotency-Key.
func newReceipt() idempotency.Receipt {
	// As long as those of the API.
	return idempotency.Receipt{KeyDigest: secret.New()[:16], Fingerprint: secret.New()[:12]}
}

func (f *fixture) credit(
	ctx context.Context, p principal.Caller, amount wallet.AmountInput, rc idempotency.Receipt,
) error {
	in := wallet.CreditInput{UserID: p.UserID, TokenCode: f.gold.Code, Amount: amount, Reason: "daily bonus"}
	_, err := f.wallet.Credit(ctx, operator, in, rc)
	return err
}

// creditAll gives the first n players enough for every row.
func (f *fixture) creditAll(ctx context.Context, n int) error {
	for i := range n {
		if err := f.credit(ctx, f.player(i), "100000", noReceipt); err != nil {
			return err
		}
	}
	return nil
}

func (f *fixture) create(
	ctx context.Context, p principal.Caller, seats int, rc idempotency.Receipt,
) (rooms.Room, error) {
	result, err := f.rooms.Create(ctx, p, rooms.CreateInput{
		EntryTokenID: f.gold.ID, RoomEntry: "2.50", MaxPlayers: seats,
	}, rc)
	if err != nil {
		return rooms.Room{}, err
	}
	return *result.Room, nil
}

func (f *fixture) join(ctx context.Context, p principal.Caller, roomID string, rc idempotency.Receipt) error {
	_, err := f.rooms.Join(ctx, p, roomID, rc)
	return err
}

// fillSeats opens a room with many seats and seats the first players.
func (f *fixture) fillSeats(ctx context.Context, seats, players int) (roomID string, err error) {
	room, err := f.create(ctx, f.player(0), seats, noReceipt)
	if err != nil {
		return "", err
	}
	for i := 1; i < players; i++ {
		if err := f.join(ctx, f.player(i), room.RoomID, noReceipt); err != nil {
			return "", err
		}
	}
	return room.RoomID, nil
}

// makeOtherRooms makes the rooms that no row uses, of the players from the first one on.
func (f *fixture) makeOtherRooms(ctx context.Context, first int) error {
	for i := range roomSeats {
		if err := f.credit(ctx, f.player(first+i), "100000", noReceipt); err != nil {
			return err
		}
	}
	for i := range otherOpenRooms + otherEndedRooms {
		room, err := f.create(ctx, f.player(first+i%roomSeats), roomSeats, noReceipt)
		if err != nil {
			return err
		}
		if i < otherOpenRooms {
			continue
		}
		for seat := 1; seat < roomSeats && err == nil; seat++ {
			err = f.join(ctx, f.player(first+(i+seat)%roomSeats), room.RoomID, noReceipt)
		}
		if err == nil {
			err = f.start(ctx, f.player(first+i%roomSeats), room.RoomID, noReceipt)
		}
		if err == nil {
			err = f.finish(ctx, first, room.RoomID, noReceipt)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *fixture) leave(ctx context.Context, p principal.Caller, roomID string, rc idempotency.Receipt) error {
	_, err := f.rooms.Leave(ctx, p, roomID, rc)
	return err
}

func (f *fixture) start(ctx context.Context, host principal.Caller, roomID string, rc idempotency.Receipt) error {
	_, err := f.rooms.Start(ctx, host, roomID, rc)
	return err
}

// placements places players first to first+roomSeats-1 in this order.
func (f *fixture) placements(first int) []rooms.Placement {
	placements := make([]rooms.Placement, roomSeats)
	for i := range placements {
		placements[i] = rooms.Placement{UserID: f.player(first + i).UserID, Place: i + 1}
	}
	return placements
}

// finish ends a room of players first to first+roomSeats-1, who are placed in this order.
func (f *fixture) finish(ctx context.Context, first int, roomID string, rc idempotency.Receipt) error {
	server := f.Server()
	_, err := f.rooms.Finish(ctx, server, roomID, f.placements(first), rc)
	return err
}

// fillFed opens a room that feeds the game's server and seats players first to first+roomSeats-2.
func (f *fixture) fillFed(ctx context.Context, first int) (roomID string, err error) {
	f.Settings.Feed = true
	room, err := f.create(ctx, f.player(first), roomSeats, noReceipt)
	f.Settings.Feed = false
	for seat := 1; seat < roomSeats-1 && err == nil; seat++ {
		err = f.join(ctx, f.player(first+seat), room.RoomID, noReceipt)
	}
	return room.RoomID, err
}

// startConsensus starts a room of players first to first+roomSeats-1 that their reports settle.
func (f *fixture) startConsensus(ctx context.Context, first int) (roomID string, err error) {
	result, err := f.rooms.Create(ctx, f.player(first), rooms.CreateInput{
		EntryTokenID: f.gold.ID, RoomEntry: "2.50", MaxPlayers: roomSeats, SettledBy: rooms.SettledByConsensus,
	}, noReceipt)
	if err != nil {
		return "", err
	}
	for seat := 1; seat < roomSeats; seat++ {
		if err := f.join(ctx, f.player(first+seat), result.Room.RoomID, noReceipt); err != nil {
			return "", err
		}
	}
	return result.Room.RoomID, f.start(ctx, f.player(first), result.Room.RoomID, noReceipt)
}

// report reports the result of a room of players first to first+roomSeats-1 as one of them.
func (f *fixture) report(ctx context.Context, first, seat int, roomID string, rc idempotency.Receipt) error {
	_, err := f.rooms.Finish(ctx, f.player(first+seat), roomID, f.placements(first), rc)
	return err
}

func (f *fixture) buy(ctx context.Context, p principal.Caller, rc idempotency.Receipt) error {
	_, err := f.assets.Purchase(ctx, p, f.sword.ID, assets.PurchaseInput{Quantity: 1}, rc)
	return err
}

// checkBalanced returns an error when the calls made or lost money.
func (f *fixture) checkBalanced(ctx context.Context) error {
	report, err := audit.New(f.db, ledgerstore.New(f.db, nil), f.wallet).AuditDeep(ctx, f.GameID)
	if err != nil {
		return err
	}
	if !report.Balanced || len(report.Differences) > 0 {
		return fmt.Errorf("the books do not balance after the calls: %+v", report)
	}
	return nil
}
