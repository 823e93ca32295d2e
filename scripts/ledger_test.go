package scripts_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
)

// TestWhatIsSaidOfTheLedgerIsTrue runs every example, and compares what its script appended to the
// ledger with the line LEDGER of its header and with what redisdb acknowledges by it. A script
// without the line must append nothing.
func TestWhatIsSaidOfTheLedgerIsTrue(t *testing.T) {
	const nonce = "theirown" // no call that prepares an example has it
	db := redistest.Single(t)
	acknowledged := map[int64][]string{}
	began := time.Now()
	db.ObserveEntries(func(gameID int64, nonce string, at time.Time) {
		acknowledged[gameID] = append(acknowledged[gameID], nonce)
		if at.Before(began) || at.After(time.Now()) {
			t.Errorf("a call began at %v", at)
		}
	})
	withEntry, without := map[string]bool{}, map[string]bool{} // scripts of which an ok told so
	check := func(t *testing.T, e example, c call) {
		t.Helper()
		ledger := func() []string { return db.Client.LRange(t.Context(), keys.Ledger(c.f.id), 0, -1).Val() }
		rule, before := e.script.Ledger.When, ledger()
		if e.script.NonceArg >= 0 {
			c = c.with(values{"nonce": nonce})
		}
		for _, attempt := range []string{"first", "second"} { // the second one is a resend
			acknowledged[c.f.id] = nil
			reply := c.run()
			after := ledger()
			hasOwn := slices.ContainsFunc(after, func(entry string) bool { return strings.Contains(entry, "|"+nonce+"|") })
			isTold := slices.Contains(acknowledged[c.f.id], nonce)
			posts := rule == scripts.LedgerAlways || rule == scripts.LedgerIf
			switch {
			case !posts && len(after) > len(before):
				t.Errorf("it has no line LEDGER that allows it, and appends %q", after[len(before):])
			case posts && attempt == "first" && len(after) > len(before) && !(hasOwn && isTold):
				t.Errorf("it appends %q, and acknowledges %q", after[len(before):], acknowledged[c.f.id])
			case isTold && !hasOwn:
				t.Errorf("the %s attempt acknowledges an entry that the ledger %q does not have", attempt, after)
			case len(acknowledged[c.f.id]) > 1 || len(acknowledged[c.f.id]) == 1 && !isTold:
				t.Errorf("the %s attempt acknowledges %q", attempt, acknowledged[c.f.id])
			}
			if e.status == scripts.OK && c.isPaid() {
				withEntry[e.script.Name] = withEntry[e.script.Name] || isTold
				without[e.script.Name] = without[e.script.Name] || !isTold && reply.Status == scripts.OK
			}
		}
	}
	runExamples(t, db, examples, check)
	runExamples(t, db, examplesWithReceipt(), func(t *testing.T, e example, c call) { check(t, e, c.keyed()) })
	for name, s := range scripts.All() {
		switch s.Ledger.When {
		case scripts.LedgerAlways:
			if !withEntry[name] || without[name] {
				t.Errorf("%s: LEDGER always, and not every ok of it acknowledges an entry", name)
			}
		case scripts.LedgerIf:
			if !withEntry[name] || !without[name] {
				t.Errorf("%s: LEDGER if, and every ok of it acknowledges an entry, or none", name)
			}
		case scripts.LedgerNever, scripts.LedgerNone:
		}
	}
}
