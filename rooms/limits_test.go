package rooms_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/limits"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// modelLimits are the limits of a player of the model. They only become tighter: a looser one
// counts a day later.
type modelLimits struct{ stake, rooms, loss int64 }

// ownLimit returns the code with which a player's own limits refuse a stake, else "".
func (m *model) ownLimit(user, entry int64) string {
	l := m.limits[user]
	switch {
	case l == nil || entry == 0:
		return ""
	case entry > l.stake:
		return "stake_limit"
	case m.open[user] >= l.rooms:
		return "open_rooms_limit"
	case m.lost[user]+entry > l.loss:
		return "loss_limit"
	}
	return ""
}

// tighten sets limits of a player, at random times, so that what was staked before is counted too.
func (m *model) tighten(p principal.Caller) {
	if lost := m.lost[p.UserID]; lost < -int64(wallet.MaxUnits)/2 || lost > int64(wallet.MaxUnits)/2 {
		return // sums beyond 2^53 are bounded, in an order of their own
	}
	l := m.limits[p.UserID]
	if l == nil {
		l = &modelLimits{int64(wallet.MaxUnits), 1_000_000, int64(wallet.MaxUnits)}
		m.limits[p.UserID] = l
	}
	l.stake = min(l.stake, rapid.SampledFrom([]int64{7, 100, int64(wallet.MaxUnits)}).Draw(m.t, "stake"))
	l.rooms = min(l.rooms, rapid.SampledFrom([]int64{1, 2, 1_000_000}).Draw(m.t, "rooms"))
	l.loss = min(l.loss, rapid.SampledFrom([]int64{1, 107, 500, int64(wallet.MaxUnits)}).Draw(m.t, "loss"))
	got := testkit.Must(
		m.fixture.newLimits().Set(m.ctx, p, m.fixture.limitsInput(p.UserID, l.stake, l.rooms, l.loss)),
	)(m.t)
	if *got.OpenRooms != m.open[p.UserID] || int64(got.Lost.Units) != m.lost[p.UserID] {
		m.t.Fatalf("player %d has %d open rooms and lost %d; want %d and %d", p.UserID, *got.OpenRooms, got.Lost.Units,
			m.open[p.UserID], m.lost[p.UserID])
	}
}

// newLimits returns the limits of players.
func (f *fixture) newLimits() *limits.Service { return limits.New(f.db, f.wallet, f) }

// limitsInput returns the input that sets limits in minor units.
func (f *fixture) limitsInput(user, stake, rooms, loss int64) limits.Input {
	amount := func(units int64) **wallet.AmountInput {
		return new(new(wallet.AmountInput(wallet.Units(units).Decimal(f.token.Decimals))))
	}
	return limits.Input{
		UserID: user, TokenCode: f.token.Code, MaxStake: amount(stake), MaxOpenRooms: new(new(rooms)),
		MaxLoss: amount(loss),
	}
}

// TestJoinsThatRaceKeepThePlayersLimits lets one player join many rooms at once through two nodes.
func TestJoinsThatRaceKeepThePlayersLimits(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		nodes := []*rooms.Service{f.service, f.newService()}
		for name, c := range map[string]struct {
			open, loss int64 // minor units
			want       int
			code       *apierror.Error
		}{
			"one room at once": {1, 1_000_000, 1, apierror.OpenRoomsLimit},
			"three losses":     {100, 399, 3, apierror.LossLimit},
		} {
			player, host := f.newPlayer(10_000), f.newPlayer(10_000)
			testkit.Must(f.newLimits().Set(t.Context(), player, f.limitsInput(player.UserID, 100, c.open, c.loss)))(t)
			var ids []string
			for range 8 {
				ids = append(ids, must(t)(f.service.Create(t.Context(), host, f.paidRoom("1", 2), noKey)).RoomID)
			}
			var seated, refused atomic.Int64
			var group sync.WaitGroup
			for i, id := range ids {
				group.Go(func() {
					switch _, err := nodes[i%2].Join(t.Context(), player, id, noKey); {
					case err == nil:
						seated.Add(1)
					case errors.Is(err, c.code):
						refused.Add(1)
					default:
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			group.Wait()
			if seated.Load() != int64(c.want) || refused.Load() != int64(len(ids)-c.want) {
				t.Errorf("%s: %d joined, %d were refused", name, seated.Load(), refused.Load())
			}
			for _, id := range ids { // to leave and to be paid back always works
				if _, err := f.service.Leave(t.Context(), player, id, noKey); err == nil {
					seated.Add(-1)
				}
			}
			if seated.Load() != 0 {
				t.Errorf("%s: %d seats are left", name, seated.Load())
			}
			f.requireBalance(player, 10_000, 0)
			must(t)(f.service.Join(t.Context(), player, ids[0], noKey)) // and makes room again
		}
		f.requireBooksBalance()
	})
}

func TestAnExcludedPlayerLeavesAndIsPaid(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b := f.newPlayer(1000), f.newPlayer(1000)
		room := must(t)(f.service.Create(ctx, a, f.paidRoom("1", 2), noKey))
		must(t)(f.service.Join(ctx, b, room.RoomID, noKey))
		in := limits.Input{
			UserID: a.UserID, TokenCode: f.token.Code, ExcludedUntil: new(new(time.Now().Add(time.Hour))),
		}
		testkit.Must(f.newLimits().Set(ctx, a, in))(t)
		mustFail(t, apierror.SelfExcluded)(f.service.Create(ctx, a, f.paidRoom("1", 2), noKey))
		must(t)(f.service.Create(ctx, a, rooms.CreateInput{MaxPlayers: 2}, noKey)) // free rooms stay open
		must(t)(f.service.Start(ctx, a, room.RoomID, noKey))
		must(t)(f.service.Finish(ctx, f.Server(), room.RoomID,
			[]rooms.Placement{{UserID: a.UserID, Place: 1}, {UserID: b.UserID, Place: 2}}, noKey))
		f.requireBalance(a, 1100, 0)
		mustFail(t, apierror.SelfExcluded)(f.service.Rematch(ctx, a, room.RoomID, noKey))
		for _, until := range []*time.Time{nil, new(time.Now().Add(time.Minute))} {
			in.ExcludedUntil = &until
			testkit.Fails(f.newLimits().Set(ctx, a, in))(t, apierror.SelfExcluded, "the exclusion was shortened")
		}
	})
}

// TestAStoppedGameMovesNoMoney stops paid rooms, and not the free ones; the sweep waits.
func TestAStoppedGameMovesNoMoney(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		var stopped atomic.Bool
		service := rooms.New(f.db, f.wallet, f, f, rooms.Options{Shards: shards, CheckMoney: func(game int64) error {
			if stopped.Load() && game == f.GameID {
				return apierror.StoreUnavailable.WithReason("stopped")
			}
			return nil
		}})
		a := f.newPlayer(1000)
		room := must(t)(service.Create(ctx, a, f.paidRoom("1", 2), noKey))
		stopped.Store(true)
		mustFail(t, apierror.StoreUnavailable)(service.Create(ctx, a, f.paidRoom("1", 2), noKey))
		mustFail(t, apierror.StoreUnavailable)(service.Leave(ctx, a, room.RoomID, noKey))
		must(t)(service.Create(ctx, a, rooms.CreateInput{MaxPlayers: 2}, noKey))
		testkit.Report(t, testkit.ErrorOf(service.Get(ctx, a, room.RoomID)))
		shard := keys.EconomyShard(f.GameID)
		created := fmt.Sprint(time.Now().Add(-48 * time.Hour).UnixMilli())
		f.db.Client.HSet(ctx, keys.Room(shard, room.RoomID), "created", created)
		f.db.Client.ZAdd(ctx, keys.RoomsDue(shard), redis.Z{Score: 1, Member: room.RoomID})
		testkit.Must(service.Sweep(ctx))(t)
		f.requireBalance(a, 900, 100)
		stopped.Store(false)
		testkit.Must(service.Sweep(ctx))(t)
		f.requireBalance(a, 1000, 0)
	})
}
