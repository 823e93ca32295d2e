package wallet_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestTheLedgerOfAGameIsReadPageByPage(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		if got := moneytest.ReadLedger(t, s, 3); len(got) != 0 {
			t.Errorf("a new game has %+v", got)
		}
		moneytest.CreateToken(t, s, "GOLD", 2)
		for i := range 7 {
			moneytest.Credit(t, s, 7, "GOLD", wallet.AmountInput(fmt.Sprintf("%d.5", i+1)))
		}
		moneytest.Debit(t, s, 7, "GOLD", "0.25")
		for _, limit := range []int{1, 3, 4, 8, 100} {
			var ids []int64
			for _, e := range moneytest.ReadLedger(t, s, limit) {
				ids = append(ids, e.ID)
			}
			if !slices.Equal(ids, []int64{8, 7, 6, 5, 4, 3, 2, 1}) {
				t.Errorf("%d a page: %v", limit, ids)
			}
		}
		last := moneytest.ReadLedger(t, s, 1)[0]
		if last.TokenCode != "GOLD" || last.Reason != "test" || last.Ref != "op" || last.At.IsZero() {
			t.Errorf("%+v", last)
		}
		last.Postings = slices.Clone(last.Postings)
		slices.SortFunc(last.Postings, func(a, b wallet.Posting) int { return int(a.Units - b.Units) })
		wantJSON(t, last.Postings, `[{"account":"wallet","userId":7,"delta":-0.25,"deltaAmount":"-25"},`+
			`{"account":"minted","userId":null,"delta":0.25,"deltaAmount":"25"}]`)

		// Entries leave the front of the list for the archive.
		ctx := t.Context()
		db.Client.LTrim(ctx, keys.Ledger(game), 5, -1)
		db.Client.Set(ctx, keys.LedgerBase(game), 5, 0)
		for _, limit := range []int{1, 2, 100} {
			var ids []int64
			for _, e := range moneytest.ReadLedger(t, s, limit) {
				ids = append(ids, e.ID)
			}
			if !slices.Equal(ids, []int64{8, 7, 6}) {
				t.Errorf("%d a page, after the archive: %v", limit, ids)
			}
		}
		if page, err := s.GameLedger(ctx, operator, game, wallet.EntryQuery{Before: 4, Limit: 2}); err != nil ||
			len(page.Entries) != 0 || page.NextBefore != 0 {
			t.Errorf("before what is left: %+v, %v", page, err)
		}
		for _, caller := range []principal.Caller{{}, {Role: principal.Server, GameID: game}} {
			testkit.Fails(s.GameLedger(ctx, caller, game, wallet.EntryQuery{Limit: 1}))(
				t, apierror.Forbidden, "%+v gets", caller)
		}
	})
}
