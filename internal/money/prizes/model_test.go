package prizes

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"pgregory.net/rapid"
)

// The model lets several leaders work on the same sources at the same time. Each call of a script
// is one step; between two steps a leader may be paused for any time, go on with what it read
// before, or die. Whatever they do, no unit is made or lost and each winner is paid once.

func TestPrizesAgreeWithTheModel(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) { checkModel(t, db) })
}

// The store's client sends a script again when its reply was lost.
func TestPrizesAgreeWithTheModelWhenEveryReplyIsLostOnce(t *testing.T) {
	db := redistest.Single(t)
	redistest.LoseReplies(db, nil)
	checkModel(t, db)
}

func checkModel(t *testing.T, db *redisdb.DB) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, db)
		for range rapid.IntRange(10, 50).Draw(t, "steps") {
			m.step()
			m.check()
		}
		m.finish()
	})
}

type model struct {
	*fixture
	t       *rapid.T
	sources []*modelSource
	leaders []func() bool // each makes one step and reports whether it goes on
}

// modelSource is what must be so for a source.
type modelSource struct {
	name  string
	units wallet.Units
	from  Funds
	plans [][]string // that leaders may have made; one of them counts
}

func newModel(t *rapid.T, db *redisdb.DB) *model {
	m := &model{fixture: newFixture(t, db), t: t}
	m.store.linesAtOnce = rapid.IntRange(1, 3).Draw(t, "lines at once")
	m.fillHouse(1000)
	for i := range 3 {
		m.sources = append(m.sources, &modelSource{
			name:  "tour:" + strconv.Itoa(i+1),
			units: wallet.Units(rapid.Int64Range(0, 600).Draw(t, "pool")),
			from:  rapid.SampledFrom([]Funds{House, Mint}).Draw(t, "from"),
		})
	}
	return m
}

// step lets one leader make a step, or die, or a new leader begin.
func (m *model) step() {
	if len(m.leaders) < 4 && (len(m.leaders) == 0 || rapid.IntRange(0, 2).Draw(m.t, "another leader") == 0) {
		m.leaders = append(m.leaders, m.newLeader(rapid.SampledFrom(m.sources).Draw(m.t, "source")))
		return
	}
	i := rapid.IntRange(0, len(m.leaders)-1).Draw(m.t, "leader")
	if rapid.IntRange(0, 9).Draw(m.t, "dies") == 0 || !m.leaders[i]() {
		m.leaders = slices.Delete(m.leaders, i, i+1)
	}
}

// must fails the test for an error but a stale one.
func (m *model) must(err error) bool {
	m.t.Helper()
	if err != nil && !errors.Is(err, redisdb.ErrStale) && !errors.Is(err, ErrPaying) {
		m.t.Fatalf("%v", err)
	}
	return err == nil
}

// newLeader returns a leader that funds, plans, pays or voids a source.
func (m *model) newLeader(s *modelSource) func() bool {
	ctx := m.t.Context()
	switch rapid.SampledFrom([]string{"fund", "fund", "plan", "plan", "pay", "pay", "pay", "void"}).Draw(m.t, "verb") {
	case "fund":
		return func() bool {
			_, err := m.Fund(ctx, m.gameID, s.name, m.gold, s.units, s.from, "op")
			m.must(err)
			return false
		}
	case "plan":
		prize, err := m.Read(ctx, m.gameID, s.name)
		m.must(err)
		if prize.State != StateFunded {
			return func() bool { return false }
		}
		lines := m.drawPlan(prize.PoolUnits)
		s.plans = append(s.plans, lines)
		first := 0
		return func() bool {
			if !m.must(m.store.planFrom(ctx, m.gameID, s.name, lines, first)) {
				first = 0 // as Plan does
				return true
			}
			first += m.store.linesAtOnce
			return first < len(lines)
		}
	case "pay":
		prize, isRead := Prize{}, false
		return func() bool {
			if isRead = !isRead; isRead {
				var err error
				prize, err = m.Read(ctx, m.gameID, s.name)
				m.must(err)
				return prize.State == StatePlanned
			}
			_, err := m.store.pay(ctx, m.gameID, prize)
			m.must(err)
			return true
		}
	default:
		return func() bool {
			m.must(m.Void(ctx, m.gameID, s.name, "test"))
			return false
		}
	}
}

const modelPlayers = 4

// drawPlan draws lines of at most the pool.
func (m *model) drawPlan(pool wallet.Units) (lines []string) {
	for i := range rapid.IntRange(0, 7).Draw(m.t, "lines") {
		if pool == 0 {
			break
		}
		line := Line{
			UserID: rapid.Int64Range(0, modelPlayers).Draw(m.t, "winner"), Place: i + 1,
			Units: wallet.Units(rapid.Int64Range(1, int64(pool)).Draw(m.t, "prize")),
		}
		pool -= line.Units
		lines = append(lines, line.encode())
	}
	return lines
}

// check compares the store with what the plans say.
func (m *model) check() {
	m.t.Helper()
	ctx := m.t.Context()
	won := map[string]wallet.Units{} // by account
	for _, s := range m.sources {
		prize, err := m.Read(ctx, m.gameID, s.name)
		m.must(err)
		stored, err := m.db.Client.LRange(ctx, keys.PrizePlan(m.gameID, s.name), 0, -1).Result()
		m.must(err)
		m.checkPlan(s, prize, stored)
		pool, paid := prize.PoolUnits, wallet.Units(0)
		if pool != 0 && pool != s.units {
			m.t.Fatalf("%s has a pool of %d; want %d", s.name, pool, s.units)
		}
		for _, line := range stored[:min(prize.Next, len(stored))] {
			parts := strings.Split(line, ":")
			units, _ := strconv.Atoi(parts[2])
			paid += wallet.Units(units)
			won[map[bool]string{true: "h", false: "w" + parts[0]}[parts[0] == "0"]] += wallet.Units(units)
		}
		left := pool - paid
		if prize.State == StatePaid || prize.State == StateVoid {
			if s.from == House {
				won["h"] += left
			} else {
				won["m"] += left
			}
			left = 0
		}
		won["p"] += left
		if s.from == House {
			won["h"] -= pool
		} else {
			won["m"] -= pool
		}
		if prize.State != StateVoid && prize.PaidUnits != paid {
			m.t.Fatalf("%s has paid %d; want %d", s.name, prize.PaidUnits, paid)
		}
	}
	m.checkAccounts(won)
}

// checkPlan requires that the stored lines are the beginning of one plan, and all of it once it is
// planned.
func (m *model) checkPlan(s *modelSource, prize Prize, stored []string) {
	m.t.Helper()
	isOf := func(plan []string) bool {
		if prize.State == StatePlanned || prize.State == StatePaid {
			return slices.Equal(plan, stored)
		}
		return len(stored) <= len(plan) && slices.Equal(plan[:len(stored)], stored)
	}
	if len(stored) > 0 && !slices.ContainsFunc(s.plans, isOf) {
		m.t.Fatalf("%s, %s, has the plan %v; the leaders made %v", s.name, prize.State, stored, s.plans)
	}
}

// checkAccounts compares the ledger with what was won, and the wallets with the ledger.
func (m *model) checkAccounts(won map[string]wallet.Units) {
	m.t.Helper()
	ctx := m.t.Context()
	entries, err := m.db.Client.LRange(ctx, keys.Ledger(m.gameID), 0, -1).Result()
	m.must(err)
	accounts := map[string]wallet.Units{}
	for _, entry := range entries {
		parts, sum := strings.Split(entry, "|"), wallet.Units(0)
		for posting := range strings.SplitSeq(parts[5], ";") {
			account, text, _ := strings.Cut(posting, ":")
			units, _ := strconv.ParseInt(text, 10, 64)
			accounts[account] += wallet.Units(units)
			sum += wallet.Units(units)
		}
		if sum != 0 {
			m.t.Fatalf("the entry %s sums to %d", entry, sum)
		}
	}
	won["h"] += 1000
	won["m"] -= 1000
	if won["h"] < 0 {
		m.t.Fatalf("the house has %d", won["h"])
	}
	for _, account := range []string{"h", "m", "p", "w1", "w2", "w3", "w4"} {
		if accounts[account] != won[account] {
			m.t.Fatalf("the account %s has %d; want %d", account, accounts[account], won[account])
		}
	}
	for user := range int64(modelPlayers) {
		if got := m.spendable(user + 1); got != won[fmt.Sprint("w", user+1)] {
			m.t.Fatalf("player %d has %d; want %d", user+1, got, won[fmt.Sprint("w", user+1)])
		}
	}
}

// finish lets a leader that does not die end every source, and audits the books.
func (m *model) finish() {
	m.t.Helper()
	ctx := m.t.Context()
	for _, s := range m.sources {
		_, err := m.Fund(ctx, m.gameID, s.name, m.gold, s.units, s.from, "op")
		m.must(err)
		m.must(m.Plan(ctx, m.gameID, s.name, nil))
		s.plans = append(s.plans, nil)
		_, err = m.Pay(ctx, m.gameID, s.name)
		m.must(err)
	}
	m.check()
	d, err := m.audits.AuditDeep(ctx, m.gameID)
	if err != nil || !d.Balanced || !d.HeldCounted || d.Tokens[0].PrizesUnits != 0 {
		m.t.Fatalf("%+v, %v", d, err)
	}
}
