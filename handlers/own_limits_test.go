package handlers_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// passTime makes the limits of a player what they are after a while: every time in them is set
// back.
func (f *fixture) passTime(p player, by time.Duration) {
	f.t.Helper()
	wallet, field := keys.Wallet(f.game, p.id), keys.WalletLimitsField("GOLD")
	text := testkit.Must(f.db.Client.HGet(f.t.Context(), wallet, field).Result())(f.t)
	shift := func(text string, by int64) string {
		n := testkit.Must(strconv.ParseInt(text, 10, 64))(f.t)
		return strconv.FormatInt(n-by, 10)
	}
	values := strings.Split(text, "|")
	for i, name := range scripts.WalletLimits.Names {
		switch {
		case strings.HasSuffix(name, "_from") && values[i] != "":
			values[i] = shift(values[i], by.Milliseconds())
		case name == "hours":
			hours := ""
			for entry := range strings.SplitSeq(strings.TrimSuffix(values[i], ","), ",") {
				if hour, units, ok := strings.Cut(entry, ":"); ok {
					hours += shift(hour, int64(by/time.Hour)) + ":" + units + ","
				}
			}
			values[i] = hours
		}
	}
	testkit.Check(f.t, f.db.Client.HSet(f.t.Context(), wallet, field, strings.Join(values, "|")).Err())
}

func TestATighterLimitCountsAtOnceAndALooserOneAfter24Hours(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixtureOn(t, db, nil).createGame()
		ann := f.guest("Ann")
		set := func(limits string) *httpResult {
			t.Helper()
			return f.expect(200, "PUT", "/api/v1/me/limits", ann.token, `{"tokenId":"GOLD",`+limits+`}`)
		}
		get := func() *httpResult {
			t.Helper()
			return f.expect(200, "GET", "/api/v1/me/limits?tokenId=GOLD", ann.token, "")
		}
		stake := func(amount string) string {
			return fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":%s,"maxPlayers":2}`, f.gold, amount)
		}
		const create, leave = "/api/v1/game-session/create", "/api/v1/game-session/leave"
		wantRefused := func(code, amount string) *httpResult {
			t.Helper()
			return f.expectError(409, code, "POST", create, ann.token, stake(amount))
		}
		wantOpen := func(amount string) (room string) {
			t.Helper()
			return f.expect(201, "POST", create, ann.token, stake(amount)).text("roomId")
		}

		set(`"maxStake":5`)
		wantRefused("stake_limit", "5.01")
		f.expect(200, "POST", leave, ann.token, roomBody(wantOpen("5")))
		before := db.Client.Time(t.Context()).Val()
		looser := set(`"maxStake":"7.5"`)
		if looser.text("maxStakeAmount") != "500" || looser.text("pending.0.limit") != "maxStake" ||
			looser.text("pending.0.value") != "7.5" || looser.text("pending.0.valueAmount") != "750" {
			t.Fatalf("%s", looser.raw)
		}
		from, err := time.Parse(time.RFC3339Nano, looser.text("pending.0.from"))
		after := db.Client.Time(t.Context()).Val()
		if err != nil || from.Before(before.Add(24*time.Hour).Truncate(time.Millisecond)) ||
			from.After(after.Add(24*time.Hour)) {
			t.Errorf("the looser limit counts from %s, %v", from, err)
		}
		wantRefused("stake_limit", "7.5")
		f.passTime(ann, 24*time.Hour-time.Minute)
		if wait := get(); wait.text("items.0.maxStake") != "5" || wait.count("items.0.pending") != 1 {
			t.Errorf("a minute too early: %s", wait.raw)
		}
		wantRefused("stake_limit", "7.5")
		f.passTime(ann, time.Minute)
		if now := get(); now.text("items.0.maxStakeAmount") != "750" || now.count("items.0.pending") != 0 {
			t.Errorf("a day later: %s", now.raw)
		}
		f.expect(200, "POST", leave, ann.token, roomBody(wantOpen("7.5")))
		wantRefused("stake_limit", "7.51")

		// A tighter limit ends the wait for a looser one; so does the old one.
		set(`"maxStake":null`)
		set(`"maxStake":6`)
		f.passTime(ann, 48*time.Hour)
		wantRefused("stake_limit", "6.01")
		set(`"maxStake":null`)
		if keeps := set(`"maxStake":6`); keeps.count("pending") != 0 {
			t.Errorf("%s", keeps.raw)
		}
		set(`"maxStake":null`)
		f.passTime(ann, 24*time.Hour)
		if none := get(); none.text("items.0.maxStake") != "null" || none.text("items.0.maxStakeAmount") != "null" {
			t.Errorf("%s", none.raw)
		}
		f.expect(200, "POST", leave, ann.token, roomBody(wantOpen("50")))

		set(`"maxOpenRooms":1`)
		room := wantOpen("1")
		wantRefused("open_rooms_limit", "1")
		set(`"maxOpenRooms":2`)
		wantRefused("open_rooms_limit", "1")
		f.passTime(ann, 24*time.Hour)
		wantOpen("1")
		wantRefused("open_rooms_limit", "1")
		f.expect(200, "POST", leave, ann.token, roomBody(room)) // whatever the limits are
		f.expectBalancedAudit()
	})
}

func TestAStakeCountsAsLostForADayUnlessItComesBack(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	const create = "/api/v1/game-session/create"
	stake := func(amount string) string {
		return fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":%s,"maxPlayers":2}`, f.gold, amount)
	}
	f.expect(200, "PUT", "/api/v1/me/limits", ann.token, `{"tokenId":"GOLD","maxLoss24h":4}`)
	f.expect(201, "POST", create, ann.token, stake("1"))
	back := f.expect(201, "POST", create, ann.token, stake("3")).text("roomId")
	wantLost := func(units string) {
		t.Helper()
		if r := f.expectError(409, "loss_limit", "POST", create, ann.token, stake("3.01")); r.text("lostAmount") != units {
			t.Errorf("%s", r.raw)
		}
	}
	wantLost("400")
	f.expect(200, "POST", "/api/v1/game-session/leave", ann.token, roomBody(back))
	wantLost("100")
	f.passTime(ann, 23*time.Hour)
	wantLost("100")
	f.passTime(ann, 2*time.Hour)
	f.expect(201, "POST", create, ann.token, stake("3.01"))
}
