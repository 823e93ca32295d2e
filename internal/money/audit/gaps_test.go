package audit_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/archiver"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// The readers of a ledger differ at gaps, and so they share no loop. The audits report a gap in the
// store and return the error of an archive that lacks something. The verification is for such
// archives: it reports what they lack and goes on with the lines of players. An export stops at an
// error, and ends where the store ends.
func TestEachReaderOfTheLedgerMeetsAGapInItsOwnWay(t *testing.T) {
	const entries, archived, unavailable = 37, 30, "store_unavailable"
	for name, c := range map[string]struct {
		damage    func(*testing.T, *redisdb.DB, string)
		noArchive bool
		// A code is that of the error; else a report has the text, and "" is that of a sound ledger.
		deep, full, verify, export string
		read                       int64 // entries that the export has printed
	}{
		"nothing is missing": {read: entries},
		"the archive lacks a segment": {
			damage: func(t *testing.T, _ *redisdb.DB, dir string) { removeSegment(t, dir, 11) },
			full:   unavailable, verify: archive.ErrNotFound.Error(), export: archive.ErrNotFound.Error(), read: 10,
		},
		"the store lacks an entry": {
			damage: func(t *testing.T, db *redisdb.DB, _ string) {
				db.Client.LSet(t.Context(), keys.Ledger(game), 2, "removed")
				db.Client.LRem(t.Context(), keys.Ledger(game), 1, "removed")
			},
			deep: "36 entries", full: "36 entries", verify: "wallets of GOLD is 37, and the ledger has 36", read: entries - 1,
		},
		"the store lacks its last entries": {
			damage: func(t *testing.T, db *redisdb.DB, _ string) {
				db.Client.LTrim(t.Context(), keys.Ledger(game), 0, 2)
			},
			deep: "33 entries", full: "33 entries", verify: "wallets of GOLD is 37, and the ledger has 33", read: 33,
		},
		"there is no archive": {
			damage: func(*testing.T, *redisdb.DB, string) {}, noArchive: true,
			deep: unavailable, full: unavailable, verify: unavailable, export: unavailable,
		},
		"there is no archive, and the store does not know that there was one": {
			damage: func(t *testing.T, db *redisdb.DB, _ string) {
				db.Client.Del(t.Context(), keys.LedgerArchive(game))
			},
			noArchive: true, deep: "entry 31", full: "entry 31", verify: unavailable, export: unavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := redistest.Single(t)
			dir := t.TempDir()
			old := testkit.Must(archive.Open("file://"+dir, archive.S3Options{}))(t)
			old = old.WithSizes(archive.Sizes{Entries: 10, Lines: 100, Checkpoint: 30})
			moneytest.MakeGames(db)
			ledgers := ledgerstore.New(db, old)
			wallets := wallet.New(db, moneytest.Players{}, wallet.Options{Ledgers: ledgers})
			moneytest.CreateToken(t, wallets, "GOLD", 0)
			for range entries {
				moneytest.Credit(t, wallets, userID, "GOLD", "1")
			}
			keep := archiver.Retention{Entries: entries - archived, Lines: 100}
			testkit.Check(t, archiver.New(db, ledgers, archiver.Options{Keep: keep}).Archive(t.Context(), game))
			if c.damage != nil {
				c.damage(t, db, dir)
			}
			if c.noArchive {
				ledgers = ledgerstore.New(db, nil)
				wallets = wallet.New(db, nil, wallet.Options{Ledgers: ledgers})
			}
			s := audit.New(db, ledgers, wallets)
			deep, err := s.AuditDeep(t.Context(), game)
			wantFound(t, "the deep audit", textOf(deep.Differences), err, c.deep)
			full, err := s.AuditFromFirstEntry(t.Context(), game)
			wantFound(t, "the full audit", textOf(full.Differences), err, c.full)
			verified, err := s.VerifyLedger(t.Context(), game, func(int64) {})
			wantFound(t, "the verification", strings.Join(verified.Problems, "; "), err, c.verify)
			read := int64(0)
			err = wallets.EachEntry(t.Context(), game, 1, entries, func(e wallet.Entry) error {
				if read++; e.ID != read {
					t.Errorf("the export has entry %d after %d", e.ID, read-1)
				}
				return nil
			})
			wantFound(t, "the export", "", err, c.export)
			if read != c.read {
				t.Errorf("the export has %d entries; want %d", read, c.read)
			}
		})
	}
}

// removeSegment removes the segment of an archive that begins with an entry.
func removeSegment(t *testing.T, dir string, first int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "game-1", "ledger", "*"))
	if err != nil || len(names) < first/10+1 {
		t.Fatal(names, err)
	}
	testkit.Check(t, os.Remove(names[first/10]))
}

// textOf returns what the differences say.
func textOf(differences []audit.Difference) string {
	var list []string
	for _, d := range differences {
		list = append(list, d.Account+": "+d.Stored+" and "+d.Counted)
	}
	return strings.Join(list, "; ")
}

// wantFound fails the test unless a reader has an error with the code or text, or a report with the
// text; it has neither for "".
func wantFound(t *testing.T, reader, report string, err error, want string) {
	t.Helper()
	got := report
	if err != nil {
		got = err.Error()
		if errors.Is(err, apierror.StoreUnavailable) {
			got = apierror.StoreUnavailable.Code
		}
	}
	if want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("%s: %q, %v; want %q", reader, report, err, want)
	}
}
