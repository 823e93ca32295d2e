package story

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// TestWhatIsLostRightAfterItsReplyIsNoticed ends the store right after the reply to calls that move
// money, as a power cut does that takes what the disk did not have: a tournament's fee, and the fee
// that goes back. No look of a node has seen their entries.
func TestWhatIsLostRightAfterItsReplyIsNoticed(t *testing.T) {
	store := redistest.StartForTest(t,
		"--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0")
	f := &fixture{t: t}
	f.startNodes(store.URL())
	op := f.setUp(nil)
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }
	opened := f.must(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/tournaments", op.game), nodetest.AdminKey,
		map[string]any{
			"name": "Cup", "format": "swiss", "entryTokenId": op.tokenID, "entryFee": 5, "minEntrants": 2, "maxEntrants": 8,
			"checkInOpensAt": at(time.Second), "startsAt": at(time.Hour), "rounds": 1, "payout": []int{10000},
			"seeding": "joined", "noShowSeconds": 7,
		})
	path := fmt.Sprintf("/api/v1/tournaments/%d", number(t, opened.Body["tournamentId"]))
	ann, bob := f.known(op, "Ann"), f.known(op, "Bob")
	f.must(200, "POST", path+"/join", bob.token, nil)

	lost := int64(0)
	for _, call := range []struct {
		verb string
		by   player
	}{{"join", ann}, {"leave", bob}} {
		files, err := filepath.Glob(filepath.Join(store.Dir, "appendonlydir", "*.incr.aof"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		before := testkit.Must(os.Stat(files[0]))(t)
		f.must(200, "POST", path+"/"+call.verb, call.by.token, nil)
		store.Kill()
		lost++
		testkit.Check(t, os.Truncate(files[0], before.Size()))
		testkit.Check(t, store.Restart())
		began := time.Now()
		words := fmt.Sprintf("the store lost %d acknowledged ledger entries of 1 games", lost)
		redistest.Eventually(t, "a node says: "+words, func() bool {
			_, detail := f.readyCheck(f.nodes[0], "history")
			return strings.Contains(detail, words)
		})
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the loss of what %s moved was noticed after %v", call.verb, took)
		}
		for _, n := range f.nodes {
			n.WaitReady(200)
		}
	}
	f.must(200, "POST", path+"/join", ann.token, nil) // money goes on
	f.wantLost(op.game)
}
