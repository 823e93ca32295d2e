package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/tests/testkit"
)

//go:generate go test . -run TestTablesOfLimitsAreFresh -update

// playerKeys lists the keys that a player can make: what bounds them for that player, and how long
// they stay. Bytes are those of one key, with what the quotas allow in it.
var playerKeys = []struct{ key, what, bound, bytes, stays string }{
	{"User", "profile", "60 sign-ups at once of an address, then one a second", "1 KB", "until deleted"},
	{"Identity", "credential", "one for each account and kind", "200 B", "as the account"},
	{"GrantedIdentity", "that an identity had the sign-up grant", "one for each deleted account", "150 B", "366 days"},
	{"RefreshFamily", "session", "sign-ins of an address (class `sign-in`)", "640 B", "30 days unused, 180 at most"},
	{"RefreshFamilies", "sessions of a player", "one", "100 B a session", "180 days"},
	{"Friends", "friends and requests sent", "2,000", "100 B each", "until removed"},
	{"FriendRequests", "requests of others", "200", "100 B each", "until answered"},
	{"BlockedPlayers", "blocked players", "10,000", "100 B each", "until removed"},
	{"PlayerPair", "two players", "friends and blocked players", "200 B", "until removed"},
	{"Save", "save slot", "16, of 1 MiB together for a guest, else 4 MiB", "4 MiB", "until deleted"},
	{"Saves", "slots of a player", "one", "1 KB", "as the saves"},
	{"UserEventSeq", "number of events", "one", "100 B", "as the account"},
	{"UserEvents", "events of a player", "32", "10 KB", "1 h"},
	{"UserBoards", "leaderboards with an entry", "leaderboards of the game", "60 B each", "as the account"},
	{"Wallet", "balances", "one", "200 B a token", "for ever"},
	{"WalletLines", "own ledger", "joins, rooms and purchases of a day", "120 B a line", "with an archive 1,500 lines"},
	{"Inventory", "assets owned", "assets of the game", "20 B each", "for ever"},
	{"MoneyReceipt", "outcome under a key", "3,000 keys a day", "200 B", "24 h"},
	{"RoomReceipt", "outcome under a key", "3,000 keys a day", "200 B", "24 h"},
	{"StoredResponse", "response under a key", "3,000 keys a day", "3 KB", "24 h"},
	{"Room", "room", "8 open, 2,000 a day", "14 KB", "24 h after its end"},
	{"RoomEvents", "events of a room", "319, of the state 64 KiB", "600 KB", "10 minutes after its end"},
	{"RoomCode", "code of a room", "one a room", "120 B", "as the room"},
	{"RoomIndex", "rooms of a game", "one member a room", "60 B", "as the room"},
	{"PlayerRooms", "rooms with a seat", "32 seats", "60 B each", "as the seats"},
	{"RoomsMade", "rooms made", "8", "60 B each", "as the rooms"},
	{"BoardEntries", "entry", "one a leaderboard and season", "40 B", "as the season"},
	{"BoardDetails", "details of an entry", "one a leaderboard and season", "2 KB", "as the season"},
	{"BoardReceipt", "outcome of a score", "requests of class `write`", "120 B", "7 days, a minute without a key"},
	{"BoardPlay", "play", "20 open ones a leaderboard", "201 B", "as a play may last"},
	{"BoardPlays", "open plays", "one a leaderboard", "1 KB", "as the last play"},
	{"DisputesLost", "disputes that staff decided against a player", "one a shard of rooms", "20 B", "for ever"},
	{"TourEntrants", "entry of a tournament", "one a tournament", "200 B", "as the tournament"},
	{"TourOrder", "order of entrants", "one a tournament", "60 B", "as the tournament"},
	{"TourAttempts", "attempts", "one a tournament", "40 B", "as the tournament"},
	{"Ticket", "ticket of a socket", "class `socket`", "300 B", "60 s"},
	{"RateLimit", "rate limit", "one a class", "120 B", "until full"},
	{"ExternalTokenUse", "outside token", "tokens that the issuer signs", "120 B", "as the token"},
	{"Ledger", "ledger of a game", "joins, rooms and purchases of a day", "150 B an entry", "with an archive 3,000"},
}

// notOfPlayers lists the other keys, which no player makes more of.
var notOfPlayers = strings.Fields(`
	Meta HistoryLosses HistoryMark Probe UserIDCounter GameIDCounter Issuers Token Tokens AssetIDCounter GameBytes
	GamesOverShare GamesWithWork GamesInWork GamesLookedAt LinesLookedAt MoneyHalts Pepper EndedSessions Trail
	ServerTrail RoutineTrail TrailGames TrailNumber TrailMark Lock FenceCounter ConsoleLink ConsoleSessions Nodes
	PresenceLeases PresenceShards ProbeChannel NodeChannel GameServers GameServerRooms Game NewPlayers Totals
	TotalsFence AuditDefects ServerMints GrantMints PrizeBudgets LedgerBase LedgerArchive Asset Assets Prize
	PrizePlan RoomCounter FreeRooms DisputedRooms RoomsDue RoomTurns RoomOutbox DeadLetters RoomsFence
	PresenceLease Boards BoardsDue TournamentBoards Board BoardSeason BoardRank Feed FeedHead GameActivity
	TourCounter Tour TourEvents TourMatches Tours ToursDue ToursFence`)

// keyFunction matches the comment of a function for a key, which starts with its name and its type.
var keyFunction = regexp.MustCompile(`(?m)^// (\w+) \((?:string|hash|list|set|zset|stream|a channel)[^)]*`)

func TestEveryKeyHasABoundOfAPlayer(t *testing.T) {
	known := slices.Clone(notOfPlayers)
	for _, row := range playerKeys {
		known = append(known, row.key)
	}
	var found []string
	for _, name := range []string{"keys.go", "board.go", "tour.go"} {
		text := testkit.Must(os.ReadFile(filepath.Join(root(t), "internal/store/keys", name)))(t)
		for _, match := range keyFunction.FindAllStringSubmatch(string(text), -1) {
			found = append(found, match[1])
			if !slices.Contains(known, match[1]) {
				t.Errorf("keys.%s is not in this list: can a player make it, and what bounds that?", match[1])
			}
		}
	}
	for _, name := range known {
		if !slices.Contains(found, name) {
			t.Errorf("there is no key %s", name)
		}
	}
}

func TestTablesOfLimitsAreFresh(t *testing.T) {
	name := filepath.Join(root(t), "docs/limits.md")
	have := testkit.Must(os.ReadFile(name))(t)
	quotas := "\n| what | most | `limit` | how exact `use` is |\n|---|---|---|---|\n"
	for _, q := range games.QuotaTable() {
		most := withCommas(q.Default)
		if q.Default == 0 {
			most = "none"
		}
		quotas += fmt.Sprintf("| %s | %s | `%s` | %s |\n", q.What, most, q.Name, q.Exact)
	}
	players := "\n| key | what | bound of a player | bytes | how long it stays |\n|---|---|---|---|---|\n"
	for _, row := range playerKeys {
		players += fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", row.key, row.what, row.bound, row.bytes, row.stays)
	}
	want := string(have)
	for _, table := range []struct{ start, end, text string }{
		{"<!-- quotas of a game: generated", "<!-- end of quotas of a game -->", quotas},
		{"<!-- keys of players: generated", "<!-- end of keys of players -->", players},
	} {
		before, rest, found := strings.Cut(want, table.start)
		comment, rest, isClosed := strings.Cut(rest, "-->\n")
		_, after, ends := strings.Cut(rest, table.end)
		if !found || !isClosed || !ends {
			t.Fatalf("docs/limits.md has no place for the table %q", table.start)
		}
		want = before + table.start + comment + "-->\n" + table.text + "\n" + table.end + after
	}
	if want == string(have) {
		return
	}
	if !*update {
		t.Fatal("the tables of docs/limits.md are stale; run `make generate`")
	}
	testkit.Check(t, os.WriteFile(name, []byte(want), 0o644))
}
