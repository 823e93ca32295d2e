package wallet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/wallet"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func open(db *redisdb.DB) *wallet.Service { return wallet.New(db, wallet.Options{}) }

func define(t *testing.T, s *wallet.Service, code string, decimals int) wallet.Token {
	t.Helper()
	token, err := s.CreateToken(t.Context(), wallet.TokenDefinition{
		TokenID: code, Name: "Token " + code, Metadata: wallet.Metadata{AssetName: "676f", PolicyID: "AB01", Decimals: strconv.Itoa(decimals)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func credit(t *testing.T, s *wallet.Service, user int64, token string, amount wallet.AmountInput) {
	t.Helper()
	if _, err := s.Credit(t.Context(), "op", user, token, amount, "test", idempotency.Receipt{}); err != nil {
		t.Fatal(err)
	}
}

func TestTokensAreMadePatchedAndFound(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s, other := open(db), open(db)
		gold := define(t, s, "GOLD", 6)
		lead := define(t, s, "lead.v2-x_", 0)
		if gold.ID != 1 || lead.ID != 2 || gold.Decimals != 6 {
			t.Fatalf("%+v, %+v", gold, lead)
		}
		if _, err := s.CreateToken(t.Context(), wallet.TokenDefinition{TokenID: "GOLD", Name: "Other", Metadata: wallet.Metadata{Decimals: "2"}}); !errors.Is(err, apierror.TokenExists) {
			t.Errorf("a second token of the code: %v", err)
		}
		if got, err := other.TokenByID(t.Context(), 2); err != nil || got.TokenID != "lead.v2-x_" {
			t.Errorf("by id: %+v, %v", got, err)
		}
		for _, id := range []int64{0, -1, 3} {
			if _, err := s.TokenByID(t.Context(), id); !errors.Is(err, apierror.TokenNotFound) {
				t.Errorf("id %d: %v", id, err)
			}
		}
		for _, code := range []string{"", "none", "next", "GO:LD", "gold"} {
			if _, err := s.Token(t.Context(), code); !errors.Is(err, apierror.TokenNotFound) {
				t.Errorf("code %q: %v", code, err)
			}
			if _, err := s.PatchToken(t.Context(), code, wallet.TokenPatch{Name: new("x")}); !errors.Is(err, apierror.TokenNotFound) {
				t.Errorf("patch of %q: %v", code, err)
			}
		}

		if _, err := other.Token(t.Context(), "GOLD"); err != nil {
			t.Fatal(err)
		}
		logo := new("https://parlor.example/gold.svg")
		patched, err := s.PatchToken(t.Context(), "GOLD", wallet.TokenPatch{Name: new("Pure gold"), LogoURL: &logo, PolicyID: new("")})
		if err != nil || patched.Name != "Pure gold" || *patched.LogoURL != *logo || patched.Metadata != (wallet.Metadata{AssetName: "676f", Decimals: "6"}) {
			t.Fatalf("%+v, %v", patched, err)
		}
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for late := time.Now().Add(5 * time.Second); ; <-tick.C {
			if got, err := other.Token(t.Context(), "GOLD"); err == nil && got.Name == "Pure gold" {
				break
			} else if time.Now().After(late) {
				t.Fatalf("the other node still sees %+v, %v", got, err)
			}
		}
		none := (*string)(nil)
		if patched, err = s.PatchToken(t.Context(), "GOLD", wallet.TokenPatch{LogoURL: &none}); err != nil || patched.LogoURL != nil {
			t.Fatalf("%+v, %v", patched, err)
		}
		all, err := s.Tokens(t.Context())
		if err != nil || len(all) != 2 || all[0].ID != 1 || all[1].ID != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
	})
}

func TestATokenThatCannotBeMeantIsRefusedWithAllItsFaults(t *testing.T) {
	s := open(redistest.Single(t))
	for _, c := range []struct {
		d    wallet.TokenDefinition
		want []string
	}{
		{wallet.TokenDefinition{}, []string{"tokenId", "tokenName", "metadata.decimals"}},
		{wallet.TokenDefinition{
			TokenID: "A B", Name: "a\nb", LogoURL: new("javascript:alert(1)"), Metadata: wallet.Metadata{AssetName: "xyz", PolicyID: "0x1", Decimals: "19"},
		}, []string{"tokenId", "tokenName", "logoUrl", "metadata.assetName", "metadata.policyId", "metadata.decimals"}},
		{wallet.TokenDefinition{TokenID: "A", Name: "a", LogoURL: new("https://"), Metadata: wallet.Metadata{Decimals: "01"}}, []string{"logoUrl", "metadata.decimals"}},
		{wallet.TokenDefinition{TokenID: "A", Name: "a", LogoURL: new(""), Metadata: wallet.Metadata{Decimals: "-1"}}, []string{"logoUrl", "metadata.decimals"}},
	} {
		_, err := s.CreateToken(t.Context(), c.d)
		r, ok := apierror.As(err)
		if !ok || r.Code != "invalid_request" {
			t.Errorf("%+v: %v", c.d, err)
			continue
		}
		var fields []string
		for _, f := range r.FieldErrors {
			fields = append(fields, f.Field)
		}
		if !slices.Equal(fields, c.want) {
			t.Errorf("%+v: faults in %v; want %v", c.d, fields, c.want)
		}
	}
}

// The wire's shapes, by both JSON packages.
func TestTokensAndBalancesOnTheWire(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(db)
		define(t, s, "SILVER", 0)
		define(t, s, "GOLD", 6)
		credit(t, s, 7, "GOLD", "2.5")
		credit(t, s, 7, "SILVER", "3")
		if _, err := s.Debit(t.Context(), "op", 7, "SILVER", "3", "test", idempotency.Receipt{}); err != nil {
			t.Fatal(err)
		}
		token, err := s.Token(t.Context(), "GOLD")
		if err != nil {
			t.Fatal(err)
		}
		balances, err := s.Balances(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
		const silver = `{"id":1,"tokenId":"SILVER","tokenName":"Token SILVER","logoUrl":null,"metadata":{"assetName":"676f","policyId":"AB01","decimals":"0"},` +
			`"volume":0,"amount":"0","held":0,"heldAmount":"0"}`
		const gold = `{"id":2,"tokenId":"GOLD","tokenName":"Token GOLD","logoUrl":null,"metadata":{"assetName":"676f","policyId":"AB01","decimals":"6"},`
		for _, c := range []struct {
			what any
			want string
		}{
			{token, gold + `"volume":2.5}`},
			{balances.Balances, "[" + silver + "," + gold + `"volume":2.5,"amount":"2500000","held":0,"heldAmount":"0"}]`},
		} {
			if got, err := json.Marshal(c.what); err != nil || string(got) != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
			if got, err := jsonv2.Marshal(c.what); err != nil || string(got) != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		}
		if none, err := s.Balances(t.Context(), 8); err != nil || none.Balances == nil || len(none.Balances) != 0 || none.AsOf.IsZero() {
			t.Errorf("nobody's balances: %+v, %v", none, err)
		}
		if b, err := s.Balance(t.Context(), 8, "GOLD"); err != nil || b.Amount != 0 || b.TokenID != "GOLD" {
			t.Errorf("%+v, %v", b, err)
		}
	})
}

func TestTheLedgerIsReadInPages(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(db)
		define(t, s, "GOLD", 1)
		define(t, s, "LEAD", 0)
		var golden []int64
		for i := range 300 { // more than one step of the search for one token
			if i%100 == 7 {
				credit(t, s, 1, "GOLD", "0.5")
				golden = append(golden, int64(i+1))
			} else {
				credit(t, s, 1, "LEAD", "1")
			}
		}
		walk := func(token string, limit int) (ids []int64) {
			for before := int64(0); ; {
				page, err := s.Ledger(t.Context(), 1, wallet.LedgerQuery{TokenID: token, Before: before, Limit: limit})
				if err != nil || len(page.Lines) > limit {
					t.Fatalf("%d lines, %v", len(page.Lines), err)
				}
				for _, l := range page.Lines {
					ids = append(ids, l.ID)
				}
				if page.Next == 0 {
					return ids
				}
				before = page.Next
			}
		}
		slices.Reverse(golden)
		for _, limit := range []int{1, 2, 3, 100} {
			if got := walk("GOLD", limit); !slices.Equal(got, golden) {
				t.Errorf("lines of GOLD, %d at a time: %v; want %v", limit, got, golden)
			}
		}
		all := walk("", 99)
		if len(all) != 300 || all[0] != 300 || all[299] != 1 || !slices.IsSortedFunc(all, func(a, b int64) int { return int(b - a) }) {
			t.Errorf("all lines: %v", all)
		}
		page, err := s.Ledger(t.Context(), 1, wallet.LedgerQuery{TokenID: "GOLD", Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		page.Lines[0].At = time.Time{}
		const want = `{"id":208,"at":"0001-01-01T00:00:00Z","tokenId":"GOLD","delta":0.5,"deltaAmount":"5","balanceAfter":1.5,"balanceAfterAmount":"15","reason":"test","ref":"op"}`
		if got, err := json.Marshal(page.Lines[0]); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
		if _, err := s.Ledger(t.Context(), 1, wallet.LedgerQuery{TokenID: "NONE", Limit: 1}); !errors.Is(err, apierror.TokenNotFound) {
			t.Errorf("an unknown token: %v", err)
		}
	})
}

func TestAWelcomeGrantIsGivenOnceForEachGame(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(db)
		define(t, s, "GOLD", 0)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				if err := s.Grant(t.Context(), 1, int64(1+i%2), "GOLD", 10); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if b, err := s.Balance(t.Context(), 1, "GOLD"); err != nil || b.Amount != 20 {
			t.Errorf("two games gave %s, %v", b.Amount, err)
		}
		for units, want := range map[wallet.Units]error{-1: apierror.InvalidAmount, wallet.MaxUnits + 1: apierror.InvalidAmount, wallet.MaxUnits: apierror.InvalidAmount, 0: nil} {
			if err := s.Grant(t.Context(), 1, 3, "GOLD", units); !errors.Is(err, want) {
				t.Errorf("a grant of %s: %v", units, err)
			}
		}
		if err := s.Grant(t.Context(), 1, 3, "LEAD", 1); !errors.Is(err, apierror.TokenNotFound) {
			t.Errorf("a grant of nothing known: %v", err)
		}
		if err := s.Grant(t.Context(), 0, 3, "GOLD", 1); !errors.Is(err, apierror.UserNotFound) {
			t.Errorf("a grant to nobody: %v", err)
		}
	})
}

func TestCreditsThatCannotBeMeantAreRefused(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(db)
		define(t, s, "GOLD", 2)
		for _, c := range []struct {
			user   int64
			token  string
			amount wallet.AmountInput
			reason string
			want   error
		}{
			{0, "GOLD", "1", "test", apierror.UserNotFound},
			{1, "LEAD", "1", "test", apierror.TokenNotFound},
			{1, "A:B", "1", "test", apierror.TokenNotFound},
			{1, "GOLD", "0", "test", apierror.InvalidAmount},
			{1, "GOLD", "0.001", "test", apierror.InvalidAmount},
			{1, "GOLD", "1", "", apierror.InvalidRequest},
			{1, "GOLD", "1", "a\x00b", apierror.InvalidRequest},
			{1, "GOLD", "1", string(make([]byte, 201)), apierror.InvalidRequest},
		} {
			for _, way := range []func() error{
				func() error {
					_, err := s.Credit(t.Context(), "op", c.user, c.token, c.amount, c.reason, idempotency.Receipt{})
					return err
				},
				func() error {
					_, err := s.Debit(t.Context(), "op", c.user, c.token, c.amount, c.reason, idempotency.Receipt{})
					return err
				},
			} {
				if err := way(); !errors.Is(err, c.want) {
					t.Errorf("%+v: %v", c, err)
				}
			}
		}
		if n, err := db.Client.Exists(t.Context(), keys.Wallet(0), keys.Wallet(1)).Result(); err != nil || n != 0 {
			t.Errorf("refusals left %d wallets, %v", n, err)
		}
	})
}

func TestARefusalForAMissingTokenIsKeptToo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(db)
		rc := idempotency.Receipt{Key: "k", Fingerprint: "f"}
		if c, err := s.Credit(t.Context(), "op", 1, "GOLD", "1", "test", rc); !errors.Is(err, apierror.TokenNotFound) || c.Replayed {
			t.Fatalf("%+v, %v", c, err)
		}
		define(t, s, "GOLD", 2)
		if c, err := s.Credit(t.Context(), "op", 1, "GOLD", "1", "test", rc); !errors.Is(err, apierror.TokenNotFound) || !c.Replayed {
			t.Fatalf("%+v, %v", c, err)
		}
		credit(t, s, 1, "GOLD", "1")
	})
}

func TestNoMoreOfATokenExistsThanCanBeCounted(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(db)
		define(t, s, "GOLD", 0)
		const most = wallet.Units(4e18)
		minted := wallet.Units(0)
		for user := int64(1); minted < most; user++ {
			n := min(wallet.MaxUnits, most-minted)
			credit(t, s, user, "GOLD", wallet.AmountInput(n.String()))
			minted += n
		}
		if _, err := s.Credit(t.Context(), "op", 10_000, "GOLD", "1", "test", idempotency.Receipt{}); !errors.Is(err, apierror.InvalidAmount) {
			t.Fatalf("one more: %v", err)
		}
		token, err := s.Token(t.Context(), "GOLD")
		if err != nil || token.Supply.Units != most {
			t.Fatalf("%+v, %v", token, err)
		}
	})
}

func wantDifference(t *testing.T, s *wallet.Service, account string) {
	t.Helper()
	d, err := s.AuditDeep(t.Context())
	if err != nil || d.Balanced || !slices.ContainsFunc(d.Differences, func(d wallet.Difference) bool { return d.Account == account }) {
		t.Errorf("the recount does not see the difference of %s: %+v, %v", account, d, err)
	}
}

func TestTheAuditSeesEveryUnitThatIsNotWhereTheLedgerPutIt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(db)
		if d, err := s.AuditDeep(t.Context()); err != nil || !d.Balanced {
			t.Fatalf("an empty store: %+v, %v", d, err)
		}
		define(t, s, "GOLD", 2)
		for user := range int64(5) {
			credit(t, s, user+1, "GOLD", "10")
		}
		d, err := s.AuditDeep(t.Context())
		if err != nil || !d.Balanced || !d.HeldCounted || d.Entries != 5 || d.Wallets != 5 {
			t.Fatalf("%+v, %v", d, err)
		}
		const want = `[{"tokenId":"GOLD","minted":50,"mintedAmount":"5000","wallets":50,"walletsAmount":"5000","escrow":0,"escrowAmount":"0","house":0,"houseAmount":"0","delta":0,"deltaAmount":"0"}]`
		if got, err := json.Marshal(d.Tokens); err != nil || string(got) != want {
			t.Fatalf("%s, %v", got, err)
		}

		ctx, c := t.Context(), db.Client
		tamper := func(account, key, field string) {
			t.Helper()
			if err := c.HIncrBy(ctx, key, field, 1).Err(); err != nil {
				t.Fatal(err)
			}
			wantDifference(t, s, account)
			if err := c.HIncrBy(ctx, key, field, -1).Err(); err != nil {
				t.Fatal(err)
			}
		}
		tamper("w:3", keys.Wallet(3), "free:GOLD")
		tamper("held", keys.Wallet(3), "held:GOLD")
		tamper("w:99", keys.Wallet(99), "free:GOLD")
		for _, account := range []string{"minted", "wallets", "escrow", "house"} {
			tamper(account, keys.Totals(), account+":GOLD")
			if r, err := s.Audit(ctx); err != nil || !r.Balanced {
				t.Fatalf("mended: %+v, %v", r, err)
			}
		}
		if err := c.HIncrBy(ctx, keys.Totals(), "house:GOLD", 1).Err(); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Audit(ctx); err != nil || r.Balanced || r.Tokens[0].Delta.Units != -1 {
			t.Fatalf("a unit from nowhere: %+v, %v", r, err)
		}
		c.HIncrBy(ctx, keys.Totals(), "house:GOLD", -1)

		lost, err := c.HGetAll(ctx, keys.Wallet(2)).Result()
		if err != nil {
			t.Fatal(err)
		}
		c.Del(ctx, keys.Wallet(2))
		wantDifference(t, s, "w:2")
		c.HSet(ctx, keys.Wallet(2), lost)
		if d, err := s.AuditDeep(ctx); err != nil || !d.Balanced {
			t.Fatalf("mended: %+v, %v", d, err)
		}
		c.XDel(ctx, keys.Ledger(), "3-0")
		wantDifference(t, s, "ledger")
	})
}

func TestTheRecountOfABusyStoreFindsNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(db)
		define(t, s, "GOLD", 0)
		credit(t, s, 1, "GOLD", "1000")
		stop := make(chan struct{})
		var busy sync.WaitGroup
		for worker := range int64(4) {
			busy.Go(func() {
				for user := worker; ; user += 4 {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := s.Credit(t.Context(), "op", 1+user%500, "GOLD", "3", "test", idempotency.Receipt{}); err != nil {
						t.Error(err)
					}
					if _, err := s.Debit(t.Context(), "op", 1+user%500, "GOLD", "2", "test", idempotency.Receipt{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 5 {
			d, err := s.AuditDeep(t.Context())
			if err != nil || !d.Balanced {
				t.Errorf("%+v, %v", d, err)
			}
			if r, err := s.Audit(t.Context()); err != nil || !r.Balanced {
				t.Errorf("%+v, %v", r, err)
			}
		}
		close(stop)
		busy.Wait()
		if d, err := s.AuditDeep(t.Context()); err != nil || !d.Balanced || !d.HeldCounted {
			t.Errorf("at rest: %+v, %v", d, err)
		}
	})
}

func TestInsufficientFundsTellsWhatIsThere(t *testing.T) {
	err := wallet.InsufficientFunds("GOLD", 2, 150, 1000)
	if fmt.Sprint(err) != "insufficient_funds: 10 GOLD are needed and 1.5 are there" {
		t.Error(err)
	}
}
