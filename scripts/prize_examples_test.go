package scripts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// winnerKeys returns the keys of prize_pay behind those with a number: those of the players of the
// next lines, as the caller names them.
func (c call) winnerKeys() (more []string) {
	plan := strings.Fields(c.text("plan"))
	for i, user := range c.players() {
		if user == "0" {
			continue
		}
		player := c.with(values{"user": user})
		more = append(more, player.keyOf("wallet"), player.keyOf("lines"))
		if line := int(c.number("next_line")) + i; line < len(plan) {
			if asset := strings.Split(plan[line], ":")[3]; asset != "" {
				more = append(more, player.keyOf("inventory"), player.with(values{"asset_id": asset}).keyOf("asset"))
			}
		}
	}
	return more
}

// fillHouse lets the house sell something for units.
func (f *fixture) fillHouse(units any) {
	f.t.Helper()
	entry := fmt.Sprintf("1|nonceofe|GOLD|purchase|asset:1|w9:-%v;h:%v", units, units)
	testkit.Check(f.t, f.db.Client.RPush(f.t.Context(), keys.Ledger(f.id), entry).Err())
}

// fund sets 1000 units aside that are minted. A tournament has no budget.
func (f *fixture) fund(given values) call {
	c := f.newCall(scripts.PrizeFund, values{"units": 1000}).with(given)
	if strings.HasPrefix(c.text("source"), "tour:") {
		return c.with(values{"board": "", "funded_at": 0, "until_ms": ""})
	}
	return c
}

// planned returns the call that plans lines of the fixture's source, all at once.
func (f *fixture) planned(lines ...any) call {
	digest := fmt.Sprint(len(lines), lines)
	return f.newCall(scripts.PrizePlan, values{"lines": len(lines), "digest": digest}, lines...)
}

// pay returns the call that pays the next lines of the plan, as if they were of these users.
func (f *fixture) pay(next int, users string) call {
	plan := f.list(keys.PrizePlan(f.id, "board:top:1"))
	var lines []string
	for i, user := range strings.FieldsFunc(users, func(r rune) bool { return r == ',' }) {
		line := user + ":1:1::"
		if next+i < len(plan) {
			_, rest, _ := strings.Cut(plan[next+i], ":")
			line = user + ":" + rest
		}
		lines = append(lines, line)
	}
	return f.newCall(scripts.PrizePay, values{
		"next_line": next, "users": users, "plan": strings.Join(plan, " "), "wanted": len(lines),
		"given_lines": strings.Join(lines, ","),
	})
}

// prepareAsset makes the asset 5, which has no stock.
func (f *fixture) prepareAsset() {
	f.newAssetCall(values{"stock": ""}).want(scripts.OK)
}

var prizeExamples = []example{
	{scripts.PrizeFund, "minted", "ok", func(f *fixture) call { return f.fund(nil) }},
	{scripts.PrizeFund, "of assets alone", "ok", func(f *fixture) call {
		return f.fund(values{"units": 0, "from": "house", "token": ""})
	}},
	{scripts.PrizeFund, "all that the house has", "ok", func(f *fixture) call {
		f.fillHouse(999)
		f.fillHouse(1)
		return f.fund(values{"from": "house"})
	}},
	{scripts.PrizeFund, "a unit more than the house has", "insufficient_funds", func(f *fixture) call {
		f.fillHouse(999)
		return f.fund(values{"from": "house"})
	}},
	{scripts.PrizeFund, "what the house has promised to others", "insufficient_funds", func(f *fixture) call {
		f.fillHouse(1999)
		f.fund(values{"from": "house", "source": "tour:7"}).want(scripts.OK)
		return f.fund(values{"from": "house"})
	}},
	{scripts.PrizeFund, "with more entries than may be parsed", "stale", func(f *fixture) call {
		f.fillHouse(1000)
		f.fillHouse(1000)
		return f.fund(values{"from": "house", "most_entries": 1})
	}},
	{scripts.PrizeFund, "more than may exist", "invalid_amount", func(f *fixture) call {
		f.set(keys.Totals(f.id), keys.TotalField(keys.TotalMinted, "GOLD"), "3999999999999999001")
		return f.fund(nil)
	}},
	{scripts.PrizeFund, "by a server key, up to what it may mint in a day", "ok", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, values{"units": 500}, 1500).want(scripts.OK)
		c := f.fund(nil)
		c.rest = []any{1500}
		return c
	}},
	{scripts.PrizeFund, "by a server key, a unit more", "limit_reached", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, values{"units": 501}, 1500).want(scripts.OK)
		c := f.fund(nil)
		c.rest = []any{1500}
		return c
	}},
	{scripts.PrizeFund, "funded already", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		return f.fund(values{"units": 5})
	}},
	{scripts.PrizeFund, "of a board whose budget is spent until a time", "stale", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		return f.fund(values{"source": "board:top:2", "funded_at": 1999})
	}},
	{scripts.PrizeFund, "of a board whose budget was spent until now", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		return f.fund(values{"source": "board:top:2", "funded_at": 2000, "until_ms": 3000})
	}},
	{scripts.PrizeFund, "of another board", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		return f.fund(values{"source": "board:other:1", "board": "other"})
	}},
	{scripts.PrizeFund, "of a board without a schedule", "ok", func(f *fixture) call {
		f.fund(values{"until_ms": ""}).want(scripts.OK)
		return f.fund(values{"source": "board:top:2", "until_ms": ""})
	}},
	{scripts.PrizeFund, "of a tournament, which has no budget", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		return f.fund(values{"source": "tour:2"})
	}},
	{scripts.PrizeFund, "voided before", "ok", func(f *fixture) call {
		f.newCall(scripts.PrizeVoid, nil).want(scripts.OK)
		return f.fund(nil)
	}},

	{scripts.PrizePlan, "all of the pool", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		return f.planned("7:1:600::", "8:2:400::")
	}},
	{scripts.PrizePlan, "of nobody", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		return f.planned()
	}},
	{scripts.PrizePlan, "a unit more", "invalid_amount", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		return f.planned("7:1:600::", "8:2:401::")
	}},
	{scripts.PrizePlan, "a unit more in the next lines", "invalid_amount", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned("7:1:600::").with(values{"lines": 2, "digest": "d"}).want(scripts.OK)
		return f.planned("8:2:401::").with(values{"lines": 2, "digest": "d", "before": 1})
	}},
	{scripts.PrizePlan, "the next lines", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned("7:1:600::").with(values{"lines": 2, "digest": "d"}).want(scripts.OK)
		return f.planned("8:2:400::").with(values{"lines": 2, "digest": "d", "before": 1})
	}},
	{scripts.PrizePlan, "instead of a plan that is not whole", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned("7:1:600::").with(values{"lines": 2, "digest": "d"}).want(scripts.OK)
		return f.planned("7:1:1000::")
	}},
	{scripts.PrizePlan, "the next lines of another plan", "stale", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned("7:1:600::").with(values{"lines": 2, "digest": "d"}).want(scripts.OK)
		return f.planned("8:2:400::").with(values{"lines": 2, "digest": "e", "before": 1})
	}},
	{scripts.PrizePlan, "with lines missing", "stale", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		return f.planned("8:2:400::").with(values{"lines": 2, "before": 1})
	}},
	{scripts.PrizePlan, "another plan, once one is whole", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned("7:1:600::").want(scripts.OK)
		return f.planned("8:1:600::")
	}},

	{scripts.PrizePay, "the only lines", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.setBalance(7, "5", "6")
		f.planned("7:1:600::", "0:0:50::", "8:2:300::").want(scripts.OK)
		return f.pay(0, "7,0,8")
	}},
	{scripts.PrizePay, "to the house what is left", "ok", func(f *fixture) call {
		f.fillHouse(1000)
		f.fund(values{"from": "house"}).want(scripts.OK)
		f.planned("7:1:600::").want(scripts.OK)
		return f.pay(0, "7")
	}},
	{scripts.PrizePay, "nobody", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned().want(scripts.OK)
		return f.pay(0, "")
	}},
	{scripts.PrizePay, "two lines of one player, with an asset", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.prepareAsset()
		f.planned("7:1:600::", "7:1:0:5:3", "7:1:100:5:2").want(scripts.OK)
		return f.pay(0, "7,7,7")
	}},
	{scripts.PrizePay, "assets alone", "ok", func(f *fixture) call {
		f.prepareAsset()
		f.planned("7:1:0:5:3").want(scripts.OK)
		return f.pay(0, "7")
	}},
	{scripts.PrizePay, "the next lines", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned("7:1:600::", "8:2:400::").want(scripts.OK)
		f.pay(0, "7").want(scripts.OK)
		return f.pay(1, "8")
	}},
	{scripts.PrizePay, "lines that are paid", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned("7:1:600::", "8:2:300::", "9:3:100::").want(scripts.OK)
		f.pay(0, "7,8").want(scripts.OK)
		return f.pay(0, "7")
	}},
	{scripts.PrizePay, "from behind the next line", "stale", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned("7:1:600::", "8:2:400::").want(scripts.OK)
		return f.pay(1, "8")
	}},
	{scripts.PrizePay, "from before the next line", "stale", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned("7:1:600::", "8:2:400::").want(scripts.OK)
		f.pay(0, "7").want(scripts.OK)
		return f.pay(0, "7,8")
	}},
	{scripts.PrizePay, "with the keys of others", "stale", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned("7:1:600::", "8:2:400::").want(scripts.OK)
		return f.pay(0, "7,9")
	}},
	{scripts.PrizePay, "a plan that is not whole", "stale", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned("7:1:600::").with(values{"lines": 2}).want(scripts.OK)
		return f.pay(0, "7")
	}},
	{scripts.PrizePay, "what was voided", "stale", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned("7:1:600::").want(scripts.OK)
		f.newCall(scripts.PrizeVoid, nil).want(scripts.OK)
		return f.pay(0, "7")
	}},

	{scripts.PrizeVoid, "what was minted", "ok", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		return f.newCall(scripts.PrizeVoid, nil)
	}},
	{scripts.PrizeVoid, "what the house gave, with a plan", "ok", func(f *fixture) call {
		f.fillHouse(1000)
		f.fund(values{"from": "house"}).want(scripts.OK)
		f.planned("7:1:600::").want(scripts.OK)
		return f.newCall(scripts.PrizeVoid, nil)
	}},
	{scripts.PrizeVoid, "nothing", "ok", func(f *fixture) call { return f.newCall(scripts.PrizeVoid, nil) }},
	{scripts.PrizeVoid, "once a line is paid", "stale", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.planned("7:1:600::", "8:2:400::").want(scripts.OK)
		f.pay(0, "7").want(scripts.OK)
		return f.newCall(scripts.PrizeVoid, nil)
	}},
	{scripts.PrizeVoid, "with the fees of players", "stale", func(f *fixture) call {
		f.fund(nil).want(scripts.OK)
		f.set(keys.Prize(f.id, "board:top:1"), keys.PrizePoolField, 1500)
		return f.newCall(scripts.PrizeVoid, nil)
	}},
}

// sums returns what each account has by the ledger.
func (f *fixture) sums() map[string]string {
	f.t.Helper()
	sums := map[string]string{}
	for _, entry := range f.list(keys.Ledger(f.id)) {
		_, postings := parseEntry(f.t, entry)
		for account, units := range postings {
			sums[account] = subtract(units.String(), subtract("0", orZero(sums[account])))
		}
	}
	return sums
}

func orZero(text string) string {
	if text == "" {
		return "0"
	}
	return text
}

func TestThePoolIsPaidToTheUnitAndTheRestReturns(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		const largest = 1<<53 - 1
		for _, tt := range []struct {
			from        string
			units, paid int
		}{{"mint", largest, largest}, {"mint", largest, 1}, {"house", largest, largest - 1}, {"house", 3, 3}} {
			f := newFixture(t, db)
			f.setBalance(7, "4000000000000000000", "9")
			f.fillHouse(tt.units)
			f.set(keys.Totals(f.id), keys.TotalField(keys.TotalMinted, "GOLD"), "1000000000000000000")
			f.fund(values{"from": tt.from, "units": tt.units}).want(scripts.OK)
			f.planned(fmt.Sprintf("7:1:%d::", tt.paid)).want(scripts.OK)
			f.pay(0, "7").want(scripts.OK)
			f.wantBalance(7, subtract("4000000000000000000", fmt.Sprint(-tt.paid)), "9")
			house, minted := fmt.Sprint(tt.units), subtract("1000000000000000000", fmt.Sprint(-tt.paid))
			if tt.from == "house" {
				house, minted = fmt.Sprint(tt.units-tt.paid), "1000000000000000000"
			}
			if got := f.sums(); got["p"] != "0" || got["h"] != house || got["w7"] != fmt.Sprint(tt.paid) {
				t.Errorf("%+v: the accounts are %v", tt, got)
			}
			if got := f.field(keys.Totals(f.id), keys.TotalField(keys.TotalMinted, "GOLD")); got != minted {
				t.Errorf("%+v: %s are minted; want %s", tt, got, minted)
			}
		}
	})
}

func TestEachLineOfAPlanTellsThePlayer(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.fund(nil).want(scripts.OK)
		f.prepareAsset()
		f.setBalance(7, "5", "6")
		f.planned("7:1:600::", "7:1:0:5:3", "7:1:100:5:2").want(scripts.OK)
		f.pay(0, "7,7,7").want(scripts.OK)
		var got []string
		for _, line := range f.list(keys.WalletLines(f.id, 7)) {
			position, rest, _ := strings.Cut(line, "-")
			_, values, _ := strings.Cut(rest, "|user.prize|")
			_, values, _ = strings.Cut(values, "|") // without the time
			got = append(got, position+" "+values)
		}
		want := []string{
			"2 GOLD|2|600|605|6|prize|board:top:1|1|||",
			"4 GOLD|2|0|605|6|prize|board:top:1|1|5|3|3",
			"6 GOLD|2|100|705|6|prize|board:top:1|1|5|2|5",
		}
		if !slices.Equal(got, want) {
			t.Errorf("the lines are\n%s; want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if owned := f.field(keys.Inventory(f.id, 7), "5"); owned != "5" {
			t.Errorf("the player owns %s", owned)
		}
		f.wantBalance(7, "705", "6")
	})
}

// The house is what the totals have and the entries that are not folded say, whatever stands
// between.
func TestTheHouseOfAScriptIsThatOfTheLedger(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		ledger := keys.Ledger(f.id)
		for _, entry := range []string{
			"1|n|GOLD|x|y|w1:-5000;h:5000",                // removed: the base is 1
			"1|n|GOLD|x|y|w1:-400;h:400",                  // folded
			"1|n|SILVER|x|y|w1:-90;h:90",                  // another token
			"1|n|GOLD|h:77|y;h:88|w1:-600;h:600",          // words that look like postings
			"1|n|GOLD|payout|room|e:-100;w7:90;h:10",      // last
			"1|n|GOLD|payout|room|e:-100;h:10;w7:90",      // between
			"1|n|GOLD|prize_fund|tour:7|h:-20;p:20",       // promised
			"1|n|GOLD|prize|tour:7|p:-20;w7:15;w17:0;h:5", // returned
		} {
			testkit.Check(t, db.Client.RPush(t.Context(), ledger, entry).Err())
		}
		testkit.Check(t, db.Client.LPop(t.Context(), ledger).Err())
		testkit.Check(t, db.Client.Set(t.Context(), keys.LedgerBase(f.id), 1, 0).Err())
		f.set(keys.Totals(f.id), keys.TotalsFoldedField, 2)
		f.set(keys.Totals(f.id), keys.TotalField(keys.TotalHouse, "GOLD"), 5400)
		const house = 5400 + 600 + 10 + 10 - 20 + 5
		f.fund(values{"from": "house", "units": house + 1}).want("insufficient_funds")
		f.fund(values{"from": "house", "units": house}).want(scripts.OK)
		f.fund(values{"from": "house", "units": 1, "source": "tour:8"}).want("insufficient_funds")
	})
}
