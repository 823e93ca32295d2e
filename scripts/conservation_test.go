package scripts_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"pgregory.net/rapid"
)

// TestRoomsConserveMoney makes random calls on rooms of any entry and players of any balance, in an
// economy of its own. After each of them it adds up wallets, rooms, ledger and lines, and compares
// the lists of rooms.
func TestRoomsConserveMoney(t *testing.T) {
	for _, store := range []struct {
		name  string
		db    *redisdb.DB
		calls int // the embedded store is slower
	}{
		{"real", redistest.Single(t), 40},
		{"embedded", openEmbedded(t), 12},
	} {
		t.Run(store.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				g := openGame(t, store.db)
				for range rapid.IntRange(store.calls/2, store.calls).Draw(t, "calls") {
					g.play()
					g.check()
				}
				g.dropAll(g.tag())
			})
		})
	}
}

// game is a model of an economy: what was given to its players, and its rooms.
type game struct {
	*fixture
	t     *rapid.T
	given map[int]*big.Int // units by player
	rooms []*gameRoom
	now   redistest.Snapshot // what is stored after the last call
}

// gameRoom is a room, and what the model knows of it.
type gameRoom struct {
	*room
	entry     int64
	max       int
	status    string
	seated    []int // in seating order
	forfeited []int // of the seated
	reported  []int // who reported
	rake      int64
}

const gamePlayers = 6

// anyUnits draws amounts about the borders of the arithmetic.
func anyUnits(most int64) *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(0, min(most, 10)),
		rapid.Int64Range(0, most),
		rapid.Int64Range(min(most, 999_999_990), min(most, 1_000_000_010)),
		rapid.Int64Range(min(most, 999_999_999_999_990), min(most, 1_000_000_000_000_010)),
		rapid.Int64Range(max(0, most-10), most),
	)
}

func openGame(t *rapid.T, db *redisdb.DB) *game {
	g := &game{fixture: newFixture(t, db), t: t, given: map[int]*big.Int{}}
	for user := 1; user <= gamePlayers; user++ {
		const most = 4_000_000_000_000_000_000
		units := rapid.Int64Range(1<<53, most).Draw(t, fmt.Sprint("balance of ", user)) // enough for any entry
		if rapid.IntRange(0, 3).Draw(t, "another balance") == 0 {
			units = anyUnits(most).Draw(t, fmt.Sprint("balance of ", user))
		}
		g.given[user] = big.NewInt(units)
		g.setBalance(int64(user), strconv.FormatInt(units, 10), "0")
	}
	return g
}

func (g *game) tag() string { return "{" + keys.EconomyShard(g.id).String() + "}:" }

// play makes one call that may succeed.
func (g *game) play() {
	if len(g.rooms) == 0 || len(g.rooms) < 3 && rapid.IntRange(0, 5).Draw(g.t, "open another") == 0 {
		g.open()
		return
	}
	r := rapid.SampledFrom(g.rooms).Draw(g.t, "room")
	user := rapid.IntRange(1, gamePlayers).Draw(g.t, "user")
	possible := []string{"join", "join", "join", "join", "leave", "kick", "start", "start"}
	if r.status != "CREATED" {
		possible = []string{
			"leave", "leave", "finish", "cancel", "join", "kick", "start", "report", "report", "report", "report", "resolve",
		}
	}
	switch rapid.SampledFrom(possible).Draw(g.t, "call") {
	case "join":
		if g.run(r.call(scripts.RoomJoin, user, nil)) && !slices.Contains(r.seated, user) {
			r.seated = append(r.seated, user)
		}
	case "leave":
		g.leave(r, rapid.SampledFrom(append([]int{user}, r.seated...)).Draw(g.t, "who leaves"))
	case "kick":
		if g.run(r.call(scripts.RoomKick, 0, values{"target": user})) {
			g.remove(r, user)
		}
	case "start":
		if g.run(r.call(scripts.RoomStart, 0, nil)) {
			r.status = "STARTED"
		}
	case "finish":
		placements, rake := g.result(r, r.seated)
		if len(r.seated) > 0 && g.run(r.finish(placements, rake)) && r.status == "STARTED" {
			r.status, r.rake = "FINISHED", rake
		}
	case "cancel":
		wasDisputed := 0
		if r.status == "DISPUTED" {
			wasDisputed = 1
		}
		if g.run(r.call(scripts.RoomCancel, 0, values{"users": joinIDs(r.seated), "was_disputed": wasDisputed})) {
			r.status = "CANCELLED"
		}
	case "report":
		g.report(r, user)
	case "resolve":
		g.resolve(r)
	}
}

// run runs a call, with a key or without, and perhaps twice. It reports whether the call succeeded.
func (g *game) run(c call) bool {
	if rapid.Bool().Draw(g.t, "with a key") {
		c = c.with(values{"key": c.args["nonce"], "fingerprint": strings.Repeat("f", 22)})
	}
	reply := c.run()
	if reply.Status != scripts.Stale && rapid.IntRange(0, 3).Draw(g.t, "its reply is lost") == 0 {
		again := c.run()
		if again.Status == scripts.Replay {
			again.Status = again.Values[0]
		}
		if again.Status != reply.Status {
			g.t.Fatalf("%s: %v, and again %v", c.script.Name, reply, again)
		}
	}
	return reply.Status == scripts.OK
}

// open opens a room whose pot stays below 2^53.
func (g *game) open() {
	most := rapid.IntRange(2, gamePlayers).Draw(g.t, "max players")
	entry := max(1, anyUnits((1<<53-1)/int64(most)).Draw(g.t, "entry"))
	creator := rapid.IntRange(1, gamePlayers).Draw(g.t, "creator")
	r, create := g.newRoom(values{"entry": entry, "max_players": most, "min_players": min(most, 3), "creator": creator})
	if g.run(create) {
		g.rooms = append(g.rooms, &gameRoom{room: r, entry: entry, max: most, status: "CREATED", seated: []int{creator}})
	}
}

// leave takes a player out of a room, with the result that a winner would have.
func (g *game) leave(r *gameRoom, user int) {
	placements, rake := g.result(r, r.seated)
	ok := g.run(r.call(scripts.RoomLeave, user, values{
		"users": joinIDs(r.seated), "placements": placements, "rake": rake, "computed_for": r.live("version"),
	}))
	switch {
	case !ok || !slices.Contains(r.seated, user):
	case r.status == "CREATED":
		g.remove(r, user)
	default:
		r.forfeited = append(r.forfeited, user)
		switch len(r.seated) - len(r.forfeited) {
		case 0:
			r.status = "CANCELLED"
		case 1, len(r.activeReporters()):
			r.status, r.rake = "FINISHED", rake
		}
	}
}

// active returns the players who have not forfeited.
func (r *gameRoom) active() []int {
	return slices.DeleteFunc(slices.Clone(r.seated), func(user int) bool { return slices.Contains(r.forfeited, user) })
}

// activeReporters returns those of them who reported.
func (r *gameRoom) activeReporters() []int {
	return slices.DeleteFunc(r.active(), func(user int) bool { return !slices.Contains(r.reported, user) })
}

// report lets an active player report with an effect that is possible.
func (g *game) report(r *gameRoom, user int) {
	active, others := r.active(), r.activeReporters()
	if len(active) > 0 && rapid.IntRange(0, 3).Draw(g.t, "an active one") > 0 {
		user = rapid.SampledFrom(active).Draw(g.t, "who reports")
	}
	isNew := slices.Contains(active, user) && !slices.Contains(r.reported, user)
	isLast := isNew && len(others)+1 == len(active)
	effects, compared := []string{"add", "concede"}, 0
	switch {
	case !isNew || r.status == "DISPUTED":
		effects = []string{"add"}
	case isLast:
		effects = []string{"agree", "concede"}
	}
	if len(others) > 0 {
		compared = others[0]
		if r.status == "STARTED" {
			effects = append(effects, "contradict")
		}
	}
	effect := rapid.SampledFrom(effects).Draw(g.t, "effect")
	placements, rake := g.result(r, r.seated)
	if effect == "add" || effect == "contradict" {
		placements = ""
	}
	text := fmt.Sprint("report of ", user) // what it says is the node's to compare
	call := r.report(user, effect, text, compared, placements).with(values{"rake": rake})
	if !g.run(call) || !isNew || r.status != "STARTED" && r.status != "DISPUTED" {
		return
	}
	r.reported = append(r.reported, user)
	switch effect {
	case "agree", "concede":
		r.status, r.rake = "FINISHED", rake
	case "contradict":
		r.status = "DISPUTED"
	}
}

// resolve decides a dispute.
func (g *game) resolve(r *gameRoom) {
	placements, rake := g.result(r, r.seated)
	status := "FINISHED"
	if rapid.Bool().Draw(g.t, "refund") {
		placements, rake, status = "", 0, "CANCELLED"
	}
	if g.run(r.resolve(joinIDs(r.seated), placements).with(values{"rake": rake})) && r.status == "DISPUTED" {
		r.status, r.rake = status, rake
	}
}

// remove takes a player out of the model of a room.
func (g *game) remove(r *gameRoom, user int) {
	r.seated = slices.DeleteFunc(r.seated, func(seated int) bool { return seated == user })
	if len(r.seated) == 0 {
		r.status = "CANCELLED"
	}
}

// result draws placements that share out the pot, and the rake.
func (g *game) result(r *gameRoom, seated []int) (placements string, rake int64) {
	left := r.entry * int64(len(seated))
	rake = rapid.Int64Range(0, left).Draw(g.t, "rake")
	left -= rake
	for i, user := range seated {
		units := left
		if i < len(seated)-1 {
			units = rapid.Int64Range(0, left).Draw(g.t, "payout")
		}
		left -= units
		placements += fmt.Sprintf("%d:%d:%d:;", user, i+1, units)
	}
	return placements, rake
}

func joinIDs(users []int) string {
	var ids []string
	for _, user := range users {
		ids = append(ids, strconv.Itoa(user))
	}
	return strings.Join(ids, ",")
}

// check adds up wallets, rooms, ledger and the players' lines.
func (g *game) check() {
	g.t.Helper()
	g.now = redistest.TakeSnapshot(g.t, g.db, g.tag())
	wallets, given := new(big.Int), new(big.Int)
	held := map[int]*big.Int{}
	escrow := new(big.Int)
	for _, r := range g.rooms {
		live := roomLive.Split(g.now[r.key()].Field("live"))
		if got := live.Text("status"); got != r.status {
			g.t.Fatalf("%s is %s; want %s", r.id, got, r.status)
		}
		pot := big.NewInt(r.entry)
		pot.Mul(pot, big.NewInt(int64(len(r.seated))))
		if got := live.Text("pot"); r.status != "CANCELLED" && got != pot.String() {
			g.t.Fatalf("the pot of %s is %s; want %d of %d", r.id, got, len(r.seated), r.entry)
		}
		g.checkSeats(r)
		if r.status != "FINISHED" && r.status != "CANCELLED" {
			escrow.Add(escrow, pot)
			for _, user := range r.seated {
				if held[user] == nil {
					held[user] = new(big.Int)
				}
				held[user].Add(held[user], big.NewInt(r.entry))
			}
		}
	}
	rakes := new(big.Int)
	for _, r := range g.rooms {
		rakes.Add(rakes, big.NewInt(r.rake))
	}
	checkRooms(g.t, keys.EconomyShard(g.id), g.id, g.now)
	accounts := g.sumLedger()
	for user := 1; user <= gamePlayers; user++ {
		given.Add(given, g.given[user])
		g.checkWallet(user, held[user], accounts[keys.WalletAccount(strconv.Itoa(user))], wallets)
	}
	if want := new(big.Int).Sub(given, rakes); wallets.Cmp(want) != 0 {
		g.t.Fatalf("the wallets have %v; %v were given and %v taken", wallets, given, rakes)
	}
	for account, want := range map[string]*big.Int{keys.AccountEscrow: escrow, keys.AccountHouse: rakes} {
		if got := accounts[account]; got != nil && got.Cmp(want) != 0 || got == nil && want.Sign() != 0 {
			g.t.Fatalf("the account %s has %v; want %v", account, got, want)
		}
	}
}

// checkSeats compares the stakes of a room's seats with its entry.
func (g *game) checkSeats(r *gameRoom) {
	g.t.Helper()
	seats := map[int]string{}
	stored := g.now[r.key()]
	for _, field := range stored.Names() {
		if user, err := strconv.Atoi(strings.TrimPrefix(field, "s")); err == nil {
			record := roomSeat.Split(stored.Field(field))
			seats[user] = record.Text("state") + " " + record.Text("stake")
		}
	}
	want := map[int]string{}
	for _, user := range r.seated {
		want[user] = fmt.Sprint("active ", r.entry)
	}
	for _, user := range r.forfeited {
		want[user] = fmt.Sprint("forfeited ", r.entry)
	}
	if !maps.Equal(seats, want) {
		g.t.Fatalf("%s, %s, has the seats %v; want %v", r.id, r.status, seats, want)
	}
}

// sumLedger returns what every account has by the ledger. Each entry must sum to zero.
func (g *game) sumLedger() map[string]*big.Int {
	g.t.Helper()
	accounts := map[string]*big.Int{}
	for _, entry := range g.now[keys.Ledger(g.id)].Values {
		sum := new(big.Int)
		_, postings := parseEntry(g.t, entry)
		for account, units := range postings {
			sum.Add(sum, units)
			if accounts[account] == nil {
				accounts[account] = new(big.Int)
			}
			accounts[account].Add(accounts[account], units)
		}
		if sum.Sign() != 0 {
			g.t.Fatalf("the ledger entry %q sums to %v", entry, sum)
		}
	}
	return accounts
}

// checkWallet compares a player's wallet with what is held in rooms, with the ledger and with the
// player's last line, and adds it to a sum. What is given and posted is what can be spent and,
// beside it, what is held.
func (g *game) checkWallet(user int, held, posted, sum *big.Int) {
	g.t.Helper()
	if held == nil {
		held = new(big.Int)
	}
	if posted == nil {
		posted = new(big.Int)
	}
	wallet := g.now[keys.Wallet(g.id, int64(user))]
	freeText, heldText, _ := strings.Cut(wallet.Field("GOLD"), "|")
	if integer(heldText).Cmp(held) != 0 {
		g.t.Fatalf("of player %d %s are held; want %v", user, heldText, held)
	}
	if want := new(big.Int).Add(g.given[user], posted); integer(freeText).Cmp(want) != 0 || want.Sign() < 0 {
		g.t.Fatalf("player %d can spend %s; want %v", user, freeText, want)
	}
	sum.Add(sum, integer(freeText)).Add(sum, held)
	lines := g.now[keys.WalletLines(g.id, int64(user))].Values
	for i, line := range lines {
		if !strings.HasPrefix(line, fmt.Sprintf("%d-", i+1)) {
			g.t.Fatalf("line %d of player %d is %q", i+1, user, line)
		}
	}
	if seq := cmp.Or(wallet.Field(keys.WalletSeqField), "0"); seq != strconv.Itoa(len(lines)) {
		g.t.Fatalf("player %d has %d lines and is at event %s", user, len(lines), seq)
	}
	if len(lines) == 0 {
		return
	}
	last := strings.Split(lines[len(lines)-1], "|")
	if got := last[6] + "|" + last[7]; got != freeText+"|"+heldText {
		g.t.Fatalf("the last line of player %d is %v; the wallet has %s|%s", user, last, freeText, heldText)
	}
}
