package tournaments

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/tests/testkit"
)

// outcomes reads matches such as "1-2 1" (round 1: players 1 and 2, 1 won), "3=4" (a draw), "5-" (a
// bye) and "6x7" (nobody came). Rounds are separated by "|".
func outcomes(t *testing.T, text string) []outcome {
	t.Helper()
	var list []outcome
	for i, round := range strings.Split(text, "|") {
		for k, match := range strings.Fields(round) {
			o := outcome{Round: i + 1, Number: k + 1}
			var err error
			switch {
			case strings.HasSuffix(match, "-"):
				_, err = fmt.Sscanf(match, "%d-", &o.A)
				o.Winner = o.A
			case strings.Contains(match, "="):
				_, err = fmt.Sscanf(match, "%d=%d", &o.A, &o.B)
				o.IsDraw = true
			case strings.Contains(match, "x"):
				_, err = fmt.Sscanf(match, "%dx%d", &o.A, &o.B)
			default: // who won is first
				_, err = fmt.Sscanf(match, "%d-%d", &o.A, &o.B)
				o.Winner = o.A
			}
			testkit.Check(t, err, "%s", match)
			list = append(list, o)
		}
	}
	return list
}

func contestants(n int) []contestant {
	list := make([]contestant, n)
	for i := range list {
		list[i] = contestant{UserID: int64(i + 1), Seed: i + 1}
	}
	return list
}

func TestStandings(t *testing.T) {
	for _, c := range []struct {
		name    string
		format  Format
		players int
		matches string
		want    string // "<place>:<user>" in order
	}{
		{"points decide", FormatSwiss, 4, "1-2 3-4 | 3-1 2-4", "1:3 2:1 3:2 4:4"},
		{"a bye is a point, nobody coming is none", FormatSwiss, 3, "1x2 3-", "1:3 2:1 3:2"},
		// 1 and 2 have two points each; 2 lost to 3, 1 to 4.
		{"Buchholz", FormatSwiss, 6, "1-6 2-5 3-4 | 4-1 3-2 5-6 | 3-6 1-5 2-4", "1:3 2:2 3:1 4:4 5:5 6:6"},
		// Both lost to 3, and have as strong opponents but for the weakest; 2 beat better ones.
		{"Sonneborn-Berger", FormatSwiss, 6, "1-6 2-5 3-4 | 3-1 2-4 5-6 | 3-2 1-5 4-6", "1:3 2:2 3:1 4:4 5:5 6:6"},
		{"the game between the tied", FormatRoundRobin, 4, "2-1 3-4 | 1-3 4-2 | 1-4 2-3", "1:2 2:1 3:3 4:4"},
		{"a cycle is not decided by its games", FormatRoundRobin, 3, "1-2 | 2-3 | 3-1", "1:1 2:2 3:3"},
		{"a bracket ties who got equally far", FormatElimination, 4, "1-4 2-3 | 2-1", "1:2 2:1 3:3 3:4"},
		{"a final without players ties them", FormatElimination, 4, "1-4 2-3 | 1x2", "1:1 1:2 3:3 3:4"},
	} {
		results := rankPlayers(c.format, contestants(c.players), outcomes(t, c.matches))
		var got []string
		for _, r := range results {
			got = append(got, fmt.Sprintf("%d:%d", r.Place, r.UserID))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

func TestTheTiebreaksOfASwiss(t *testing.T) {
	// Of three rounds, 1 beat 4 and 2, drew with 3; 2 beat 3, lost to 1, had a bye.
	results := rankPlayers(FormatSwiss, contestants(5), outcomes(t, "1-4 2-3 5- | 1-2 5=4 3- | 1=3 4-5 2-"))
	find := func(user int64) *result {
		return results[slices.IndexFunc(results, func(r *result) bool { return r.UserID == user })]
	}
	// Points: 1 2.5, 2 2, 3 1.5, 4 1.5, 5 1.5.
	one, two := find(1), find(2)
	if one.HalfPoints != 5 || one.Wins != 2 || one.Draws != 1 || one.Losses != 0 {
		t.Errorf("player 1: %+v", one)
	}
	// Opponents of 1: 4 (1.5), 2 (2), 3 (1.5); without the weakest 3.5. Beaten 4 and 2, half of 3.
	if one.BuchholzHalves != 7 || one.SonnebornBergerQuarters != 2*3+2*4+3 {
		t.Errorf("player 1: Buchholz %d halves, Sonneborn-Berger %d quarters", one.BuchholzHalves,
			one.SonnebornBergerQuarters)
	}
	// Opponents of 2: 3 (1.5), 1 (2.5), nobody, who is the weakest. Beaten: 3.
	if two.BuchholzHalves != 8 || two.SonnebornBergerQuarters != 6 {
		t.Errorf("player 2: Buchholz %d halves, Sonneborn-Berger %d quarters", two.BuchholzHalves,
			two.SonnebornBergerQuarters)
	}
	text, err := wire.Marshal(one.tiebreaks(FormatSwiss))
	if want := `{"buchholz":3.5,"directEncounter":0,"sonnebornBerger":4.25,"seed":1}`; err != nil || string(text) != want {
		t.Errorf("on the wire: %s, %v, want %s", text, err, want)
	}
}

func TestWhoWasDisqualifiedIsBehindAllOthers(t *testing.T) {
	for _, format := range []Format{FormatSwiss, FormatRoundRobin, FormatElimination} {
		players := contestants(4)
		players[0].IsOut, players[0].IsDisqualified = true, true
		results := rankPlayers(format, players, outcomes(t, "1-2 3-4 | 1-3 2-4"))
		if last := results[3]; last.UserID != 1 || last.Place != 4 || results[0].Place != 1 {
			t.Errorf("%s: the last is %d at place %d", format, last.UserID, last.Place)
		}
	}
}

func TestGamesBetweenTheTiedCountOnlyWhenAllHaveMet(t *testing.T) {
	table := newTable(contestants(3), outcomes(t, "2-1"))
	table.addDirectEncountersOf(table.results[:2])
	if first, second := table.results[0], table.results[1]; first.DirectHalves != 0 || second.DirectHalves != 2 {
		t.Errorf("of two: %d and %d halves, want 0 and 2", first.DirectHalves, second.DirectHalves)
	}
	table = newTable(contestants(3), outcomes(t, "2-1"))
	table.addDirectEncountersOf(table.results)
	for _, r := range table.results {
		if r.DirectHalves != 0 {
			t.Errorf("of three: player %d has %d halves", r.UserID, r.DirectHalves)
		}
	}
}
