package leaderboards

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/money/prizes"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// A leader dies when it has paid some winners, and the board is deleted then: the others are paid
// as well, and the prizes of the season that is open return.
func TestADeletedBoardPaysToTheEndWhatIsBeingPaid(t *testing.T) {
	const winners = 101 // one more than a script pays
	f := newPrizeFixture(t, redistest.Single(t))
	budget := -1 // commands until the leader dies; -1: it lives
	redistest.FailCommands(f.db, func() bool {
		if budget > 0 {
			budget--
		}
		return budget == 0
	})
	f.create(Definition{Prizes: table(PrizeRow{FromPlace: 1, ToPlace: winners, Prize: "0.05"})})
	for user := range int64(winners) {
		f.mustSend(user+1, "1")
	}
	testkit.Must(f.EndSeason(t.Context(), operator, f.gameID, "top", 1))(t)
	source, accounts := f.board().prizeSource(f.board().find(1)), prizes.New(f.db, f.wallets)
	isPlanned := false
	for commands := 1; ; commands++ {
		budget = commands
		_, err := f.node(Options{}).sweepGames(t.Context(), 1, []int64{f.gameID})
		budget = -1
		prize, readErr := accounts.Read(t.Context(), f.gameID, source)
		if readErr != nil || err == nil {
			t.Fatalf("no leader died between two payments: %+v, %v", prize, readErr)
		}
		if prize.Next > 0 && prize.State == prizes.StatePlanned {
			break
		}
		if prize.State == prizes.StatePlanned && !isPlanned { // from now on a leader needs fewer commands
			isPlanned, commands = true, 0
		}
	}
	testkit.Check(t, f.Delete(t.Context(), operator, f.gameID, "top"))
	f.sweep()
	var want []string
	for user := range 10 {
		want = append(want, fmt.Sprintf("%d:5", user+1))
	}
	f.wantWon(strings.Join(want, " "))
	if got := f.promised(); got != 0 {
		t.Errorf("%d are promised", got)
	}
	for _, name := range []string{source, "board:top:2"} {
		prize, err := accounts.Read(t.Context(), f.gameID, name)
		if err != nil || prize.State != prizes.StatePaid && prize.State != prizes.StateVoid {
			t.Errorf("%s: %+v, %v", name, prize, err)
		}
		life := f.db.Client.PTTL(t.Context(), keys.Prize(f.gameID, name)).Val()
		plans := f.db.Client.Exists(t.Context(), keys.PrizePlan(f.gameID, name)).Val()
		if life <= 0 || life > time.Hour || plans != 0 {
			t.Errorf("%s stays for %v, with %d plans", name, life, plans)
		}
	}
}
