package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

const tournamentsPath = "/api/v1/tournaments/"

func (n operatorNode) tournamentStatus(t *testing.T, id string) string {
	t.Helper()
	r := n.Must(t, http.StatusOK, http.MethodGet, tournamentsPath+id+"?gameId=1", nodetest.AdminKey, nil)
	return r.Body["status"].(string)
}

// expectTool runs a command that succeeds and prints what the pattern describes.
func (n operatorNode) expectTool(t *testing.T, pattern string, args ...string) {
	t.Helper()
	status, out := n.tool(t, args...)
	if status != 0 || !regexp.MustCompile(`(?s)^`+pattern+`$`).MatchString(out) {
		t.Errorf("%v exits %d:\n%s\nwant %s", args, status, out, pattern)
	}
}

func TestTournamentsAreListedShownAndCancelled(t *testing.T) {
	n := startSeeded(t)
	for _, id := range []string{"1", "2"} {
		n.Must(t, http.StatusOK, http.MethodPost, tournamentsPath+"1/join", n.player(t, id), nil)
	}
	n.expectTool(t, `id .*\n1 +REGISTRATION +single_elimination +2 of 8 +0 +5 GOLD +\S+Z +Open cup\n`,
		"tournaments", "list", "--game", "1")
	n.expectTool(t, `id [^\n]*\n`, "tournaments", "list", "--game", "1", "--status", "finished")
	n.expectTool(t, `\[\{"tournamentId":1,.*"name":"Open cup".*\]\n`,
		"tournaments", "list", "--game", "1", "-n", "1", "--status", "REGISTRATION", "--json")
	n.expectTool(t, `name +Open cup\nstatus +REGISTRATION\n.*players +2, from 2 to 8\n.*pot +5 GOLD\n.*`,
		"tournaments", "show", "1", "--game", "1")

	n.admin(t, http.StatusOK, http.MethodPost, "games/1/tournaments/1/start", nil)
	redistest.Eventually(t, "the first round has begun", func() bool {
		_, out := n.tool(t, "tournaments", "show", "1", "--game", "1")
		return regexp.MustCompile(`(?m)^r1m1 +READY +[12] and [12] +- +\S{36}$`).MatchString(out)
	})
	n.expectTool(t, `.*\nplace +points +player +name +prize\n1 +0 +[12] +(ada|bob) +-\n.*`,
		"tournaments", "show", "1", "--game", "1")
	var report struct {
		Tournament struct {
			ID int64 `json:"tournamentId"`
		} `json:"tournament"`
		Matches   []any `json:"matches"`
		Standings []any `json:"standings"`
	}
	_, out := n.tool(t, "tournaments", "show", "1", "--game", "1", "--json")
	if err := wire.Unmarshal([]byte(out), &report); err != nil || report.Tournament.ID != 1 || len(report.Matches) != 1 ||
		len(report.Standings) != 2 {
		t.Errorf("%v:\n%s", err, out)
	}

	for _, args := range [][]string{
		{"list", "--game", "9"},
		{"list", "--game", "0"},
		{"list", "--game", "1", "--status", "LOST"},
		{"list", "--game", "1", "-n", "0"},
		{"show", "7", "--game", "1"},
		{"show", "cup", "--game", "1"},
		{"cancel", "1", "--game", "1"},
		{"cancel", "1", "--game", "1", "--reason", " "},
		{"cancel", "7", "--game", "1", "--reason", "a test"},
	} {
		if status, out := n.tool(t, append([]string{"tournaments"}, args...)...); status != 1 ||
			!strings.HasPrefix(out, "parlor: ") {
			t.Errorf("%v exits %d: %s", args, status, out)
		}
	}
	if got := n.tournamentStatus(t, "1"); got != "RUNNING" {
		t.Fatalf("it is %s", got)
	}
	for range 2 {
		n.expectTool(t, `tournament 1 is CANCELL(ING|ED)\n`,
			"tournaments", "cancel", "1", "--game", "1", "--reason", "a flood")
	}
	redistest.Eventually(t, "the fees are back", func() bool {
		return n.tournamentStatus(t, "1") == "CANCELLED"
	})
	n.expectTool(t, `.*GOLD +300 +300 +0 +0 +0 +0 *\n.*balanced\n`, "audit", "--deep")
	n.expectTool(t, `.*status +CANCELLED, operator\n.*`, "tournaments", "show", "1", "--game", "1")
	actions, after := n.trailOf(t, "tournament:1.1")
	if len(actions) != 2 || actions[0] != "cancelTournament" || after[0]["reason"] != "a flood" ||
		after[0]["status"] != "CANCELLING" || actions[1] != "startTournament" {
		t.Errorf("the trail has %v, %v", actions, after)
	}
}

// The example does not fill a store up, and never stands in the way of a newer one.
func TestTheSeededTournamentEndsWithTooFewPlayersAndIsMadeAnew(t *testing.T) {
	n := startSeeded(t)
	ada := n.player(t, "1")
	n.Must(t, http.StatusOK, http.MethodPost, tournamentsPath+"1/join", ada, nil)
	seed := func() string { return must(t, "seed", "--redis-url", n.store) }
	if out := seed(); !strings.HasSuffix(out, "tournament 1 \"Open cup\"\n") {
		t.Errorf("while it is open, seed prints:\n%s", out)
	}
	n.admin(t, http.StatusOK, http.MethodPost, "games/1/tournaments/1/start", nil)
	redistest.Eventually(t, "it is cancelled", func() bool { return n.tournamentStatus(t, "1") == "CANCELLED" })
	n.expectTool(t, `.*status +CANCELLED, undersubscribed\n.*`, "tournaments", "show", "1", "--game", "1")
	n.expectTool(t, `.*GOLD +300 +300 +0 +0 +0 +0 *\n.*balanced\n`, "audit", "--deep")
	for range 2 {
		if out := seed(); !strings.HasSuffix(out, "tournament 2 \"Open cup\"\n") {
			t.Errorf("after its end, seed prints:\n%s", out)
		}
	}
	n.Must(t, http.StatusOK, http.MethodPost, tournamentsPath+"2/join", ada, nil)
}
