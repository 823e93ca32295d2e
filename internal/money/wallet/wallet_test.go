package wallet_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const (
	game      = moneytest.Game
	otherGame = moneytest.OtherGame
)

var (
	operator = principal.Caller{Role: principal.Operator}
	system   = principal.Caller{Role: principal.System}

	noReceipt idempotency.Receipt
)

func newService(db *redisdb.DB) *wallet.Service {
	moneytest.MakeGames(db)
	return wallet.New(db, moneytest.Players{}, wallet.Options{})
}

// wantJSON compares the wire form of a value.
func wantJSON(t *testing.T, value any, want string) {
	t.Helper()
	got := testkit.Must(wire.Marshal(value))(t)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTokensAreCreatedPatchedAndFound(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s, otherNode := newService(db), newService(db)
		gold, lead := moneytest.CreateToken(t, s, "GOLD", 6), moneytest.CreateToken(t, s, "lead.v2-x_", 0)
		if gold.ID != 1 || lead.ID != 2 || gold.Decimals != 6 {
			t.Fatalf("%+v, %+v", gold, lead)
		}
		taken := wallet.TokenDefinition{Code: "GOLD", Name: "Other", Metadata: wallet.Metadata{Decimals: "2"}}
		testkit.Fails(s.CreateToken(t.Context(), operator, taken))(t, apierror.TokenCodeTaken, "a second token of the code")
		if got, err := otherNode.TokenByID(t.Context(), game, 2); err != nil || got.Code != "lead.v2-x_" {
			t.Errorf("by id: %+v, %v", got, err)
		}
		for _, id := range []int64{0, -1, 3} {
			testkit.Fails(s.TokenByID(t.Context(), game, id))(t, apierror.TokenNotFound, "id %d", id)
		}
		patch := wallet.TokenPatch{Name: new("x")}
		for _, code := range []string{"", "none", "next", "GO:LD", "gold"} {
			testkit.Fails(s.FindToken(t.Context(), game, code))(t, apierror.TokenNotFound, "code %q", code)
			testkit.Fails(s.PatchToken(t.Context(), operator, code, patch))(t, apierror.TokenNotFound, "patch of %q", code)
		}
		all := testkit.Must(s.Tokens(t.Context(), game))(t)
		if diff := cmp.Diff([]wallet.Token{gold, lead}, all); diff != "" {
			t.Errorf("all tokens (-want +got)\n%s", diff)
		}
	})
}

func TestAPatchedTokenIsSeenByOtherNodes(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s, otherNode := newService(db), newService(db)
		want := moneytest.CreateToken(t, s, "GOLD", 6)
		testkit.Must(otherNode.FindToken(t.Context(), game, "GOLD"))(t) // now it is cached
		logo := new("https://parlor.example/gold.svg")
		want.Name, want.LogoURL, want.Metadata.PolicyID = "Pure gold", logo, ""
		patch := wallet.TokenPatch{Name: &want.Name, LogoURL: &logo, PolicyID: new("")}
		got := testkit.Must(s.PatchToken(t.Context(), operator, "GOLD", patch))(t)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the patched token (-want +got)\n%s", diff)
		}
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(5 * time.Second); ; <-tick.C {
			if got, err := otherNode.FindToken(t.Context(), game, "GOLD"); err == nil && got.Name == "Pure gold" {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("the other node still sees %+v, %v", got, err)
			}
		}
		noLogo := (*string)(nil)
		got, err := s.PatchToken(t.Context(), operator, "GOLD", wallet.TokenPatch{LogoURL: &noLogo})
		if err != nil || got.LogoURL != nil {
			t.Fatalf("%+v, %v", got, err)
		}
	})
}

func TestAnInvalidTokenIsRejectedWithAllItsFields(t *testing.T) {
	s := newService(redistest.Single(t))
	for _, c := range []struct {
		definition wallet.TokenDefinition
		want       []string
	}{
		{wallet.TokenDefinition{}, []string{"tokenId", "tokenName", "metadata.decimals"}},
		{
			wallet.TokenDefinition{
				Code: "A B", Name: "a\nb", LogoURL: new("javascript:alert(1)"),
				Metadata: wallet.Metadata{AssetName: "xyz", PolicyID: "0x1", Decimals: "19"},
			},
			[]string{"tokenId", "tokenName", "logoUrl", "metadata.assetName", "metadata.policyId", "metadata.decimals"},
		},
		{
			wallet.TokenDefinition{
				Code: "A", Name: "a", LogoURL: new("https://"), Metadata: wallet.Metadata{Decimals: "01"},
			},
			[]string{"logoUrl", "metadata.decimals"},
		},
		{
			wallet.TokenDefinition{Code: "A", Name: "a", LogoURL: new(""), Metadata: wallet.Metadata{Decimals: "-1"}},
			[]string{"logoUrl", "metadata.decimals"},
		},
	} {
		_, err := s.CreateToken(t.Context(), operator, c.definition)
		e, ok := apierror.As(err)
		if !ok || e.Code != apierror.InvalidRequest.Code {
			t.Errorf("%+v: %v", c.definition, err)
			continue
		}
		var fields []string
		for _, f := range e.FieldErrors {
			fields = append(fields, f.Field)
		}
		if diff := cmp.Diff(c.want, fields); diff != "" {
			t.Errorf("%+v: (-want +got)\n%s", c.definition, diff)
		}
	}
}

func TestTokensAndBalancesOnTheWire(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		moneytest.CreateToken(t, s, "SILVER", 0)
		moneytest.CreateToken(t, s, "GOLD", 6)
		moneytest.Credit(t, s, 7, "GOLD", "2.5")
		moneytest.Credit(t, s, 7, "SILVER", "3")
		moneytest.Debit(t, s, 7, "SILVER", "3")
		token := testkit.Must(s.FindToken(t.Context(), game, "GOLD"))(t)
		balances := testkit.Must(s.ReadBalances(t.Context(), game, 7))(t)
		const silver = `{"id":1,"tokenId":"SILVER","tokenName":"Token SILVER","logoUrl":null,` +
			`"metadata":{"assetName":"676f","policyId":"AB01","decimals":"0"},` +
			`"volume":0,"amount":"0","held":0,"heldAmount":"0"}`
		const gold = `{"id":2,"tokenId":"GOLD","tokenName":"Token GOLD","logoUrl":null,` +
			`"metadata":{"assetName":"676f","policyId":"AB01","decimals":"6"},"volume":2.5`
		wantJSON(t, token, gold+"}")
		wantJSON(t, balances.Balances, "["+silver+","+gold+`,"amount":"2500000","held":0,"heldAmount":"0"}]`)

		none, err := s.ReadBalances(t.Context(), game, 8)
		if err != nil || none.Balances == nil || len(none.Balances) != 0 || none.AsOf.IsZero() {
			t.Errorf("balances of an empty wallet: %+v, %v", none, err)
		}
		if b, err := s.ReadBalance(t.Context(), game, 8, "GOLD"); err != nil || b.SpendableUnits != 0 || b.Code != "GOLD" {
			t.Errorf("%+v, %v", b, err)
		}
	})
}

func TestTheLedgerIsReadInPages(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		moneytest.CreateToken(t, s, "GOLD", 1)
		moneytest.CreateToken(t, s, "LEAD", 0)
		var goldIDs []int64
		for i := range 300 { // more than one step of the search for one token
			if i%100 == 7 {
				moneytest.Credit(t, s, 1, "GOLD", "0.5")
				goldIDs = append(goldIDs, int64(i+1))
			} else {
				moneytest.Credit(t, s, 1, "LEAD", "1")
			}
		}
		readAll := func(code string, limit int) (ids []int64) {
			for before := int64(0); ; {
				page, err := s.Ledger(t.Context(), game, 1, wallet.LedgerQuery{TokenCode: code, BeforeLine: before, Limit: limit})
				if err != nil || len(page.Lines) > limit {
					t.Fatalf("%d lines, %v", len(page.Lines), err)
				}
				for _, l := range page.Lines {
					ids = append(ids, l.ID)
				}
				if page.NextBefore == 0 {
					return ids
				}
				before = page.NextBefore
			}
		}
		slices.Reverse(goldIDs)
		for _, limit := range []int{1, 2, 3, 100} {
			if diff := cmp.Diff(goldIDs, readAll("GOLD", limit)); diff != "" {
				t.Errorf("lines of GOLD, %d at a time (-want +got)\n%s", limit, diff)
			}
		}
		all := readAll("", 99)
		newestFirst := slices.IsSortedFunc(all, func(a, b int64) int { return int(b - a) })
		if len(all) != 300 || all[0] != 300 || all[299] != 1 || !newestFirst {
			t.Errorf("all lines: %v", all)
		}
		page := testkit.Must(s.Ledger(t.Context(), game, 1, wallet.LedgerQuery{TokenCode: "GOLD", Limit: 1}))(t)
		page.Lines[0].At = time.Time{}
		wantJSON(t, page.Lines[0], `{"id":208,"at":"0001-01-01T00:00:00.000Z","tokenId":"GOLD","delta":0.5,`+
			`"deltaAmount":"5","balanceAfter":1.5,"balanceAfterAmount":"15","reason":"test","ref":"op"}`)
		testkit.Fails(s.Ledger(t.Context(), game, 1, wallet.LedgerQuery{TokenCode: "NONE", Limit: 1}))(
			t, apierror.TokenNotFound, "an unknown token")
	})
}

// The archiver removes lines from the front; the ids of the others stay. This node has no archive.
func TestTheIDsOfLinesStayWhenOldOnesAreRemoved(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		moneytest.CreateToken(t, s, "GOLD", 0)
		for range 50 {
			moneytest.Credit(t, s, 1, "GOLD", "1")
		}
		removed := int64(0)
		for _, upTo := range []int64{0, 20, 50} {
			db.Client.LTrim(t.Context(), keys.WalletLines(game, 1), upTo-removed, -1)
			db.Client.HSet(t.Context(), keys.Wallet(game, 1), keys.WalletBaseField, upTo)
			removed = upTo
			for _, code := range []string{"", "GOLD"} {
				want := int64(50)
				for before := int64(0); ; {
					q := wallet.LedgerQuery{TokenCode: code, BeforeLine: before, Limit: 7}
					page, err := s.Ledger(t.Context(), game, 1, q)
					if errors.Is(err, apierror.StoreUnavailable) && want == upTo {
						break // it says that there are older ones
					}
					testkit.Check(t, err)
					for _, l := range page.Lines {
						if l.ID != want || l.BalanceAfterUnits != wallet.Units(want) {
							t.Fatalf("line %d has the id %d and the balance %s", want, l.ID, l.BalanceAfterUnits)
						}
						want--
					}
					if page.NextBefore == 0 {
						break
					}
					before = page.NextBefore
				}
				if want != upTo {
					t.Errorf("the lines end at %d; want %d", want, upTo)
				}
			}
			page, err := s.Ledger(t.Context(), game, 1, wallet.LedgerQuery{BeforeLine: 10, Limit: 100})
			if upTo > 0 {
				testkit.WantError(t, err, apierror.StoreUnavailable, "lines that were removed: %+v", page)
				continue
			}
			if want := 9; err != nil || len(page.Lines) != want {
				t.Errorf("%d lines before the tenth, %v; want %d", len(page.Lines), err, want)
			}
		}
	})
}

func TestReasonsAreKeptToTheLetter(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		moneytest.CreateToken(t, s, "GOLD", 0)
		const reason = `a|b;c%7C "π" \ w1:5`
		in := wallet.CreditInput{UserID: 1, TokenCode: "GOLD", Amount: "5", Reason: reason}
		testkit.Must(s.Credit(t.Context(), operator, in, noReceipt))(t)
		page, err := s.Ledger(t.Context(), game, 1, wallet.LedgerQuery{Limit: 1})
		if err != nil || page.Lines[0].Reason != reason || page.Lines[0].Ref != "op" {
			t.Errorf("%+v, %v", page, err)
		}
		if quick, err := moneytest.NewAudit(db, s).Audit(t.Context(), game); err != nil || !quick.Balanced {
			t.Errorf("the quick report: %+v, %v", quick, err)
		}
		if deep, err := moneytest.NewAudit(db, s).AuditDeep(t.Context(), game); err != nil || !deep.Balanced {
			t.Errorf("the deep report: %+v, %v", deep, err)
		}
	})
}

// A request that is sent again and again must not stay in the store for ever.
func TestAReplayedReceiptKeepsItsLifetime(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		moneytest.CreateToken(t, s, "GOLD", 0)
		in := wallet.CreditInput{UserID: 1, TokenCode: "GOLD", Amount: "1", Reason: "test"}
		for name, send := range map[string]func(idempotency.Receipt) (wallet.ChangeResult, error){
			"credit": func(r idempotency.Receipt) (wallet.ChangeResult, error) {
				return s.Credit(t.Context(), operator, in, r)
			},
			"debit": func(r idempotency.Receipt) (wallet.ChangeResult, error) {
				return s.Debit(t.Context(), operator, wallet.DebitInput(in), r)
			},
		} {
			moneytest.Credit(t, s, 1, "GOLD", "1")
			receipt := idempotency.Receipt{KeyDigest: name, Fingerprint: "f"}
			key := keys.MoneyReceipt(game, operator.ActorID(), name)
			for _, lifetime := range []time.Duration{24 * time.Hour, time.Hour} {
				testkit.Must(send(receipt))(t)
				left, err := db.Client.PTTL(t.Context(), key).Result()
				if err != nil || left > lifetime || left < lifetime-time.Minute {
					t.Errorf("%s: the receipt is kept for %v, %v; want %v", name, left, err, lifetime)
				}
				db.Client.PExpire(t.Context(), key, time.Hour) // as if most of its time had passed
			}
		}
	})
}

func TestTheGrantOfAGameIsGivenOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		moneytest.CreateToken(t, s, "GOLD", 0)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				in := wallet.GrantInput{UserID: 1, GameID: int64(1 + i%2), TokenCode: "GOLD", Units: 10} // of either game
				testkit.Report(t, s.Grant(t.Context(), system, in))
			})
		}
		all.Wait()
		for _, gameID := range []int64{game, otherGame} {
			if b, err := s.ReadBalance(t.Context(), gameID, 1, "GOLD"); err != nil || b.SpendableUnits != 10 {
				t.Errorf("game %d granted %s, %v", gameID, b.SpendableUnits, err)
			}
		}
		for _, c := range []struct {
			in   wallet.GrantInput
			want error
		}{
			{wallet.GrantInput{UserID: 1, GameID: 3, TokenCode: "GOLD", Units: -1}, apierror.InvalidAmount},
			{wallet.GrantInput{UserID: 1, GameID: 3, TokenCode: "GOLD", Units: wallet.MaxUnits + 1}, apierror.InvalidAmount},
			{wallet.GrantInput{UserID: 2, GameID: 3, TokenCode: "GOLD", Units: wallet.MaxUnits}, nil},
			{wallet.GrantInput{UserID: 2, GameID: 3, TokenCode: "GOLD", Units: wallet.MaxUnits}, nil}, // was given
			{wallet.GrantInput{UserID: 1, GameID: 3, TokenCode: "GOLD"}, nil},
			{wallet.GrantInput{UserID: 1, GameID: 3, TokenCode: "LEAD", Units: 1}, apierror.TokenNotFound},
			{wallet.GrantInput{UserID: 1, GameID: 3, TokenCode: "A:B", Units: 1}, apierror.TokenNotFound},
			{wallet.GrantInput{GameID: 3, TokenCode: "GOLD", Units: 1}, apierror.UserNotFound},
			{wallet.GrantInput{UserID: 1, TokenCode: "GOLD", Units: 1}, apierror.UserNotFound},
		} {
			testkit.WantError(t, s.Grant(t.Context(), system, c.in), c.want, "%+v", c.in)
		}
	})
}

func TestInvalidCreditsAndDebitsChangeNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		moneytest.CreateToken(t, s, "GOLD", 2)
		for _, c := range []struct {
			in   wallet.CreditInput
			want error
		}{
			{wallet.CreditInput{UserID: 0, TokenCode: "GOLD", Amount: "1", Reason: "test"}, apierror.UserNotFound},
			{wallet.CreditInput{UserID: 1, TokenCode: "LEAD", Amount: "1", Reason: "test"}, apierror.TokenNotFound},
			{wallet.CreditInput{UserID: 1, TokenCode: "A:B", Amount: "1", Reason: "test"}, apierror.TokenNotFound},
			{wallet.CreditInput{UserID: 1, TokenCode: "GOLD", Amount: "0", Reason: "test"}, apierror.InvalidAmount},
			{wallet.CreditInput{UserID: 1, TokenCode: "GOLD", Amount: "0.001", Reason: "test"}, apierror.InvalidAmount},
			{wallet.CreditInput{UserID: 1, TokenCode: "GOLD", Amount: "1", Reason: ""}, apierror.InvalidRequest},
			{wallet.CreditInput{UserID: 1, TokenCode: "GOLD", Amount: "1", Reason: "a\x00b"}, apierror.InvalidRequest},
			{
				wallet.CreditInput{UserID: 1, TokenCode: "GOLD", Amount: "1", Reason: string(make([]byte, 201))},
				apierror.InvalidRequest,
			},
		} {
			testkit.Fails(s.Credit(t.Context(), operator, c.in, noReceipt))(t, c.want, "credit %+v", c.in)
			testkit.Fails(s.Debit(t.Context(), operator, wallet.DebitInput(c.in), noReceipt))(t, c.want, "debit %+v", c.in)
		}
		n, err := db.Client.Exists(t.Context(), keys.Wallet(game, 0), keys.Wallet(game, 1)).Result()
		if err != nil || n != 0 {
			t.Errorf("%d wallets were created, %v", n, err)
		}
	})
}

func TestTheErrorForAnUnknownTokenIsNotKeptUnderTheReceipt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		in := wallet.CreditInput{UserID: 1, TokenCode: "GOLD", Amount: "1", Reason: "test"}
		receipt := idempotency.Receipt{KeyDigest: "k", Fingerprint: "f"}
		if r, err := s.Credit(t.Context(), operator, in, receipt); !errors.Is(err, apierror.TokenNotFound) || r.Replayed {
			t.Fatalf("%+v, %v", r, err)
		}
		moneytest.CreateToken(t, s, "GOLD", 2)
		for _, replayed := range []bool{false, true} {
			if r, err := s.Credit(t.Context(), operator, in, receipt); err != nil || r.Replayed != replayed {
				t.Fatalf("%+v, %v", r, err)
			}
		}
	})
}

func TestTheSupplyOfATokenIsBounded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		moneytest.CreateToken(t, s, "GOLD", 0)
		const maxSupply = wallet.Units(4e18)
		minted := wallet.Units(0)
		for userID := int64(1); minted < maxSupply; userID++ {
			units := min(wallet.MaxUnits, maxSupply-minted)
			moneytest.Credit(t, s, userID, "GOLD", wallet.AmountInput(units.String()))
			minted += units
		}
		in := wallet.CreditInput{UserID: 10_000, TokenCode: "GOLD", Amount: "1", Reason: "test"}
		if _, err := s.Credit(t.Context(), operator, in, noReceipt); !errors.Is(err, apierror.InvalidAmount) {
			t.Fatalf("one more: %v", err)
		}
		token, err := s.FindToken(t.Context(), game, "GOLD")
		if err != nil || token.Supply.Units != maxSupply {
			t.Fatalf("%+v, %v", token, err)
		}
	})
}

func TestInsufficientFundsNamesBothAmounts(t *testing.T) {
	err := wallet.InsufficientFunds("GOLD", 2, 150, 1000)
	if fmt.Sprint(err) != "insufficient_funds: 10 GOLD are needed and 1.5 are there" {
		t.Error(err)
	}
}
