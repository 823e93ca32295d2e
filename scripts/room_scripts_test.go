package scripts_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// largestEntry is the largest entry of a room of three: the pot is the largest number that is exact
// in a script.
const largestEntry = (1<<53 - 1) / 3

// unbalanced are results of a room of three with an entry of 250 that are not its pot.
var unbalanced = []struct{ name, placements, rake string }{
	{"less than the pot", "1:1:700:;2:2:49:;3:3:0:;", "0"},
	{"more than the pot", "1:1:700:;2:2:51:;3:3:0:;", "0"},
	{"less with the rake", "1:1:700:;2:2:0:;3:3:0:;", "49"},
	{"more with the rake", "1:1:700:;2:2:0:;3:3:0:;", "51"},
	{"a rake above the pot", "1:1:0:;2:2:0:;3:3:0:;", "751"},
	{"units above the pot", "1:1:751:;2:2:0:;3:3:0:;", "0"},
	{"units above every exact number", "1:1:9223372036854775807:;2:2:0:;3:3:0:;", "0"},
	{"a sum that wraps around", "1:1:9223372036854775807:;2:2:9223372036854775807:;3:3:752:;", "0"},
	{"a negative rake", "1:1:700:;2:2:55:;3:3:0:;", "-5"},
	{"a negative payout", "1:1:1000:;2:2:-250:;3:3:0:;", "0"},
	{"a seat left out", "1:1:750:;2:2:0:;", "0"},
	{"a seat more", "1:1:750:;2:2:0:;3:3:0:;4:4:0:;", "0"},
	{"a player named twice", "1:1:750:;2:2:0:;2:3:0:;", "0"},
	{"nobody", "", "750"},
}

func TestAResultThatIsNotThePotChangesNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		r := f.openRoom(nil).join(2, 3).start()
		for _, u := range unbalanced {
			if u.placements != "" {
				r.finish(u.placements, u.rake).changesNothing(scripts.Stale)
			}
		}
		r.finish("1:1:700:;2:2:30:;3:3:0:;", 20).with(values{"computed_for": 1}).changesNothing(scripts.Stale)
		result := r.finish("1:1:700:;2:2:30:;3:3:0:;", 20)
		for _, users := range []string{"1", "1,2", "1,2,3,4"} { // whose keys are given
			result.with(values{"users": users}).changesNothing(scripts.Stale)
			result.with(values{"users": users}).keyed().changesNothing(scripts.Stale)
		}
		result.want(scripts.OK)
		f.wantBalances("1450|0", "780|0", "750|0")
	})
}

func TestAResultOfTheLastOneLeftThatIsNotThePotChangesNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		r := f.openRoom(nil).join(2, 3).start()
		r.call(scripts.RoomLeave, 3, nil).want(scripts.OK)
		leave := r.call(scripts.RoomLeave, 2, values{"users": "1,2,3", "computed_for": r.live("version")})
		for _, u := range unbalanced {
			leave.with(values{"placements": u.placements, "rake": u.rake}).changesNothing(scripts.Stale)
		}
		leave = leave.with(values{"placements": "1:1:700:;2:0:0:;3:0:0:;", "rake": 50})
		leave.with(values{"computed_for": 1}).changesNothing(scripts.Stale)
		leave.with(values{"computed_for": ""}).changesNothing(scripts.Stale)
		leave.with(values{"users": "2,1"}).changesNothing(scripts.Stale)
		leave.want(scripts.OK)
		f.wantBalances("1450|0", "750|0", "750|0")
	})
}

// What players agree on, or concede, and what staff decides in a dispute.
func TestAResultOfPlayersOrStaffThatIsNotThePotChangesNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		for name, end := range map[string]func(r *room) func(placements string) call{
			"agreed": func(r *room) func(string) call {
				r.report(1, "add", "1,2,3", 0, "").want(scripts.OK)
				r.report(2, "add", "1,2,3", 1, "").want(scripts.OK)
				return func(placements string) call { return r.report(3, "agree", "1,2,3", 1, placements) }
			},
			"conceded": func(r *room) func(string) call {
				return func(placements string) call { return r.report(3, "concede", "1,2,3", 0, placements) }
			},
			"decided": func(r *room) func(string) call {
				r.dispute()
				return func(placements string) call {
					return r.resolve("1,2,3", placements).with(values{"outcome": "finish"})
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				for user := range int64(3) {
					f.setBalance(user+1, "1000", "0")
				}
				r := f.openRoom(nil).join(2, 3).start()
				ending := end(r)
				for _, u := range unbalanced {
					if u.placements != "" {
						ending(u.placements).with(values{"rake": u.rake}).changesNothing(scripts.Stale)
					}
				}
				ending("1:1:700:;2:2:30:;3:3:0:;").with(values{"rake": 20}).want(scripts.OK)
				f.wantBalances("1450|0", "780|0", "750|0")
			})
		}
	})
}

// wantBalances compares the balances of the players 1, 2, 3 …
func (f *fixture) wantBalances(want ...string) {
	f.t.Helper()
	for i, balance := range want {
		free, held := f.balance(int64(i + 1))
		if got := free + "|" + held; got != balance {
			f.t.Errorf("player %d has %s; want %s", i+1, got, balance)
		}
	}
}

func TestTheLargestPotIsTakenAndPaidExactly(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		r, create := f.newRoom(values{"entry": largestEntry})
		for user := range int64(3) {
			f.setBalance(user+1, "4000000000000000000", "999999999999999999")
		}
		create.want(scripts.OK)
		r.join(2, 3).start()
		if pot := r.live("pot"); pot != strconv.Itoa(3*largestEntry) {
			t.Errorf("the pot is %s", pot)
		}
		f.wantBalances("3996997600248419670|1003002399751580329")
		winning := strconv.Itoa(3*largestEntry - 7)
		r.finish("1:1:"+winning+":;2:2:8:;3:3:0:;", 0).changesNothing(scripts.Stale)
		r.finish("1:1:"+winning+":;2:2:6:;3:3:0:;", 0).changesNothing(scripts.Stale)
		r.finish("1:1:"+winning+":;2:2:2:;3:3:0:;", 5).want(scripts.OK)
		f.wantBalances("4006004799503160653|999999999999999999", "3996997600248419672|999999999999999999",
			"3996997600248419670|999999999999999999")
	})
}

// A forfeited stake stays in the pot, and is returned when there is no winner.
func TestARoomThatIsCancelledReturnsEveryStake(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		for name, end := range map[string]func(r *room) call{
			"cancel": func(r *room) call { return r.call(scripts.RoomCancel, 0, values{"users": "1,2,3"}) },
			"sweep":  func(r *room) call { return r.call(scripts.RoomSweep, 0, values{"users": "1,2,3"}) },
		} {
			f := newFixture(t, db)
			r := f.openRoom(values{"match_ms": 0}).join(2, 3).start()
			r.call(scripts.RoomLeave, 2, nil).want(scripts.OK)
			f.wantBalances("750|250", "750|250", "750|250")
			end(r).want(scripts.OK)
			f.wantBalances("1000|0", "1000|0", "1000|0")
			if got := r.field(r.key(), "refunds"); got != "1:250;2:250;3:250;" {
				t.Errorf("%s: the refunds are %s", name, got)
			}
		}
	})
}

// Whose friends may join a rematch depends on its creator. Everything else is as it was.
func TestARematchHasTheSettingsOfItsRoomAndACreatorOfItsOwn(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		r := f.openRoom(values{"friends_only": 1, "max_players": 5})
		r.call(scripts.RoomJoin, 2, values{"friend": 1}).want(scripts.OK)
		rematch := r.cancel("1,2").call(scripts.RoomRematch, 2, values{"users": "1"})
		rematch.want(scripts.OK)
		before := roomSettings.Split(r.field(r.key(), "settings"))
		after := roomSettings.Split(r.field(keys.Room(r.shard, rematch.text("new_room_id")), "settings"))
		for _, name := range scripts.RoomSettings.Names {
			want := before.Text(name)
			if name == "creator" {
				want = "2"
			}
			if got := after.Text(name); got != want {
				t.Errorf("%s is %s; want %s", name, got, want)
			}
		}
	})
}

// The nonces of the last 32 calls without a key are remembered.
func TestTheLast32CallsOfARoomAreRecognised(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		r := f.openRoom(free).join(2)
		var calls []call
		for i := range 34 {
			c := r.call(scripts.RoomReady, 2, values{"is_ready": (i + 1) % 2})
			c.want(scripts.OK)
			calls = append(calls, c)
		}
		// Player 2 is not ready now. A call with a key has a receipt, and no mark.
		for _, i := range []int{32, 30, 4, 2} {
			calls[i].changesNothing(scripts.OK)
		}
		r.call(scripts.RoomReady, 2, values{"is_ready": 1}).keyed().want(scripts.OK)
		for _, i := range []int{33, 31, 5, 3} {
			calls[i].changesNothing(scripts.OK)
		}
		version := r.live("version")
		calls[1].want(scripts.OK)
		if r.live("version") == version {
			t.Error("the 33rd call before the last one with a mark is recognised: the marks are not bounded")
		}
	})
}

// The marks of two calls stand side by side: what is at their border is the nonce of neither.
func TestANonceIsNotFoundAcrossTwoMarks(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		r := newFixture(t, db).openRoom(free).join(2)
		for i, nonce := range []string{"aaaabbbb", "ccccdddd"} {
			r.call(scripts.RoomReady, 2, values{"is_ready": 1 - i, "nonce": nonce}).want(scripts.OK)
		}
		version := r.live("version")
		r.call(scripts.RoomReady, 2, values{"is_ready": 1, "nonce": "bbbbcccc"}).want(scripts.OK)
		if r.live("version") == version {
			t.Error("the call is taken for a resend")
		}
	})
}

// Every script that leaves a mark finds its own, whatever the others leave.
func TestACallWithoutAKeyIsRecognisedAfterAnotherOne(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		r := f.openRoom(values{"max_players": 6, "min_players": 1})
		var first []call
		for _, c := range []call{
			r.call(scripts.RoomJoin, 2, nil),
			r.call(scripts.RoomJoin, 3, nil),
			r.call(scripts.RoomReady, 2, nil),
			r.call(scripts.RoomKick, 1, values{"target": 3}),
			r.call(scripts.RoomTransfer, 1, values{"target": 2}),
			r.call(scripts.RoomLeave, 1, nil),
			r.call(scripts.RoomJoin, 1, nil),
			r.call(scripts.RoomTransfer, 2, values{"target": 1}),
			r.call(scripts.RoomReady, 2, values{"is_ready": 0}),
			r.call(scripts.RoomStart, 1, nil),
			r.call(scripts.RoomCancel, 0, values{"users": "1,2"}),
		} {
			c.want(scripts.OK)
			first = append(first, c)
		}
		for _, c := range first {
			c.changesNothing(scripts.OK)
		}
	})
}

func TestARoomBansAtMost256Players(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		if db.Kind() != redisdb.KindSingle {
			t.Skip("one store is enough for so many calls")
		}
		r := newFixture(t, db).openRoom(free)
		for user := 2; user < 258; user++ {
			r.join(user)
			r.call(scripts.RoomKick, 1, values{"target": user, "ban": 1}).want(scripts.OK)
		}
		r.join(300)
		r.call(scripts.RoomKick, 1, values{"target": 300, "ban": 1}).changesNothing("limit_reached")
		r.call(scripts.RoomKick, 1, values{"target": 300}).want(scripts.OK)
	})
}

func TestTheSweepEndsNothingBeforeItsTime(t *testing.T) {
	const soon, late = 0, 3_600_000
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		for _, tt := range []struct {
			name     string
			settings values
			started  bool
			want     string
		}{
			{"open", values{"idle_ms": late, "age_ms": late, "match_ms": soon}, false, "CREATED"},
			{"idle", values{"idle_ms": soon, "age_ms": late, "match_ms": late}, false, "CANCELLED idle"},
			{"too old", values{"idle_ms": late, "age_ms": soon, "match_ms": late}, false, "CANCELLED expired"},
			{"playing", values{"idle_ms": soon, "age_ms": soon, "match_ms": late}, true, "STARTED"},
			{"no result", values{"idle_ms": late, "age_ms": late, "match_ms": soon}, true, "CANCELLED timeout"},
		} {
			r := f.openRoom(tt.settings).join(2)
			if tt.started {
				r.start()
			}
			r.call(scripts.RoomSweep, 0, values{"users": "1,2"}).want(scripts.OK)
			if got := strings.TrimSpace(r.live("status") + " " + r.field(r.key(), "reason")); got != tt.want {
				t.Errorf("%s: %s; want %s", tt.name, got, tt.want)
			}
			if strings.HasPrefix(tt.want, "CANCELLED") {
				f.wantBalances("1000|0", "1000|0")
			}
		}
	})
}

// An hour that is not quite over: a second more or less decides, by the clock of the store.
func TestTheSweepReadsTheClockOfTheStore(t *testing.T) {
	const hour = 3_600_000
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		for _, tt := range []struct {
			agoMS int64
			want  string
		}{
			{hour - 60_000, "CREATED"},
			{hour, "CANCELLED"},
		} {
			f := newFixture(t, db)
			r := f.openRoom(values{"idle_ms": hour, "age_ms": 10 * hour}).join(2)
			now := testkit.Must(db.Client.Time(t.Context()).Result())(t)
			live := r.field(r.key(), "live")
			changed := strconv.FormatInt(now.UnixMilli()-tt.agoMS, 10)
			f.set(r.key(), "live", strings.Replace(live, r.live("changed"), changed, 1))
			r.call(scripts.RoomSweep, 0, values{"users": "1,2"}).want(scripts.OK)
			if got := r.live("status"); got != tt.want {
				t.Errorf("%d ms after the last change it is %s; want %s", tt.agoMS, got, tt.want)
			}
		}
	})
}

func TestAnEndedRoomLosesItsEventsFirst(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		for _, tt := range []struct {
			name         string
			keep, events int
			room, list   bool // whether they stay
		}{
			{"nothing is over", 3_600_000, 600_000, true, true},
			{"the time of the events is over", 3_600_000, 0, true, false},
			{"the time of the room is over", 0, 600_000, false, false},
		} {
			for _, settings := range []values{{"keep_ms": tt.keep}, {"keep_ms": tt.keep, "entry": 0}} {
				r := f.openRoom(settings).join(2).start()
				r.finish("2:1:"+strconv.Itoa(map[bool]int{true: 500}[r.shard.Paid()])+":;1:2:0:;", 0).want(scripts.OK)
				sweep := r.call(scripts.RoomSweep, 0, values{"users": "", "events_ms": tt.events})
				sweep.want(scripts.OK)
				after := sweep.snapshot()
				_, room := after[r.key()]
				_, list := after[keys.RoomEvents(r.shard, r.id)]
				_, code := after[keys.RoomCode(r.shard, r.code)]
				if room != tt.room || list != tt.list || code != tt.room {
					t.Errorf("%s: the room stays: %v, its events: %v, its code: %v", tt.name, room, list, code)
				}
				if !room {
					for key, stored := range after {
						if stored.Type == "zset" && slices.Contains(stored.Names(), r.id) {
							t.Errorf("%s: %s still names the room", tt.name, key)
						}
					}
				}
			}
		}
	})
}

// What an older leader of the sweep does too late must not undo what the newer one did.
func TestAnOlderLeaderOfTheSweepChangesNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		r := newFixture(t, db).openRoom(values{"idle_ms": 0}).join(2)
		r.call(scripts.RoomSweep, 0, values{"room_id": "none", "fence": 10}).want(scripts.OK)
		sweep := r.call(scripts.RoomSweep, 0, values{"users": "1,2"})
		sweep.with(values{"fence": 9}).changesNothing(scripts.Stale)
		sweep.with(values{"fence": 10}).want(scripts.OK)
		if got := r.live("status"); got != "CANCELLED" {
			t.Errorf("the same leader may go on, but the room is %s", got)
		}
	})
}

// Ten is more than nine, though "10" sorts before "9".
func TestAnEntryIsComparedAsANumber(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		for _, tt := range amountPairs {
			if tt.amount == "0" || len(tt.amount) > 15 {
				continue
			}
			f.setBalance(1, tt.balance, "0")
			_, create := f.newRoom(values{"entry": tt.amount})
			f.setBalance(1, "4000000000000000000", "0")
			r, other := f.newRoom(values{"entry": tt.amount})
			other.want(scripts.OK)
			f.setBalance(1, tt.balance, "0")
			f.setBalance(2, tt.balance, "0")
			want := "insufficient_funds"
			if tt.covers {
				want = scripts.OK
			}
			for _, c := range []call{create, r.call(scripts.RoomJoin, 2, nil)} {
				if got := c.run().Status; got != want {
					t.Errorf("%s, entry %s and a balance of %s: %s", c.script.Name, tt.amount, tt.balance, got)
				}
			}
		}
	})
}

// The ids of a room's events count without a gap, whatever happens to the room.
func TestEventsOfARoomAreNumberedWithoutAGap(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		r := newFixture(t, db).openRoom(nil).join(2, 3)
		r.call(scripts.RoomReady, 2, nil).want(scripts.OK)
		r.call(scripts.RoomLeave, 1, nil).want(scripts.OK)
		r.join(1).start()
		r.finish("1:1:750:;2:2:0:;3:3:0:;", 0).want(scripts.OK)
		entries := r.list(keys.RoomEvents(r.shard, r.id))
		for i, entry := range entries {
			if !strings.HasPrefix(entry, fmt.Sprintf("%d-", i+1)) {
				t.Errorf("event %d is %s", i+1, entry)
			}
		}
		position := r.live("seq") + "-" + r.live("nonce") + "|"
		if last := entries[len(entries)-1]; !strings.HasPrefix(last, position) {
			t.Errorf("the room is at %s and its last event is %s", position, last)
		}
	})
}

func TestARoomKeepsItsNewestEvents(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		r := newFixture(t, db).openRoom(free).join(2)
		for i := range 400 {
			r.call(scripts.RoomReady, 2, values{"is_ready": 1 - i%2}).want(scripts.OK)
		}
		entries := r.list(keys.RoomEvents(r.shard, r.id))
		if n := len(entries); n < 256 || n > 319 {
			t.Errorf("it has %d events", n)
		}
		if last := entries[len(entries)-1]; !strings.HasPrefix(last, "402-") {
			t.Errorf("the last event is %s", last)
		}
	})
}

// A receipt stays for a day, so its bytes count: it has at most 100, with amounts of 15 digits and
// ids as long as they get.
func TestReceiptsAreShort(t *testing.T) {
	const most = 100
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		r, create := f.newRoom(values{"entry": 200_000_000_000_000, "max_players": 3})
		f.newAssetCall(values{"price": 100_000_000_000_000, "stock": "", "limit": ""}).want(scripts.OK)
		for user := range int64(3) {
			f.setBalance(user+1, "999999999999999", "0")
		}
		f.setBalance(7, "999999999999999", "999999999999999")
		create.want(scripts.OK)
		largest := 0
		for _, next := range []func() call{
			func() call { return r.call(scripts.RoomJoin, 2, nil) },
			func() call { return r.call(scripts.RoomJoin, 3, nil) },
			func() call { return r.call(scripts.RoomStart, 1, nil) },
			func() call { return r.call(scripts.RoomLeave, 3, nil) },
			func() call { return r.finish("1:1:600000000000000:;2:2:0:;3:0:0:;", 0) },
			func() call { return f.newCall(scripts.WalletCredit, values{"units": 999_999_999_999_999}) },
			func() call {
				return f.newCall(scripts.AssetPurchase, values{"asset_id": 5, "quantity": 1, "expected_price": ""})
			},
		} {
			c := next().keyed()
			c = c.with(values{"key": c.script.Name + c.text("user")})
			c.want(scripts.OK)
			receipt, err := db.Client.Get(t.Context(), c.receipt()).Result()
			if err != nil || len(receipt) > most {
				t.Errorf("%s leaves a receipt of %d bytes: %q, %v", c.script.Name, len(receipt), receipt, err)
			}
			largest = max(largest, len(receipt))
		}
		t.Logf("the largest receipt has %d bytes", largest)
	})
}
