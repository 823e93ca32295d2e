package rooms

import (
	"math/big"
	"slices"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/tests/testkit"
	"pgregory.net/rapid"
)

func TestThePotIsSplitByThePayoutTable(t *testing.T) {
	for _, c := range []struct {
		name   string
		pot    wallet.Units
		bps    int
		table  []int
		places []int
		want   []wallet.Units
		rake   wallet.Units
	}{
		{"the first takes all", 300, 0, []int{10000}, []int{1, 2, 3}, []wallet.Units{300, 0, 0}, 0},
		{"rake rounds down", 333, 250, []int{10000}, []int{1, 2}, []wallet.Units{325, 0}, 8},
		{"all is rake", 100, 10000, []int{10000}, []int{1, 2}, []wallet.Units{0, 0}, 100},
		{"two places", 1000, 0, []int{7000, 3000}, []int{1, 2, 3}, []wallet.Units{700, 300, 0}, 0},
		{
			"what rounding leaves goes to the largest fraction", 10, 0,
			[]int{3000, 3500, 3500},
			[]int{1, 2, 3},
			[]wallet.Units{3, 4, 3},
			0,
		},
		{
			"of equal fractions to the better place", 10, 0,
			[]int{3334, 3333, 3333},
			[]int{1, 2, 3},
			[]wallet.Units{4, 3, 3},
			0,
		},
		{
			"the places that are reached share in proportion", 100, 0,
			[]int{5000, 3000, 2000},
			[]int{1, 2},
			[]wallet.Units{63, 37},
			0,
		},
		{"nothing for the places that are reached", 100, 0, []int{0, 0, 10000}, []int{1, 2}, []wallet.Units{100, 0}, 0},
		{"a tie for the first", 101, 0, []int{10000}, []int{1, 1, 3}, []wallet.Units{51, 50, 0}, 0},
		{
			"a tie shares what the places get", 1000, 0,
			[]int{5000, 3000, 2000},
			[]int{1, 2, 2},
			[]wallet.Units{500, 250, 250},
			0,
		},
		{"a tie of all with a rest of two", 101, 100, []int{10000}, []int{1, 1, 1}, []wallet.Units{34, 33, 33}, 1},
		{"one player alone", 7, 1000, []int{6000, 4000}, []int{1}, []wallet.Units{7}, 0},
		{"a tie past the table", 100, 0, []int{10000}, []int{1, 2, 2}, []wallet.Units{100, 0, 0}, 0},
		{
			"the largest pot", wallet.MaxUnits, 1,
			[]int{9999, 1},
			[]int{1, 2},
			[]wallet.Units{9005397904962035, 900629853482},
			900719925474,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ranked []Placement
			for i, place := range c.places {
				ranked = append(ranked, Placement{UserID: int64(i + 1), Place: place})
			}
			payouts, rake := splitPot(c.pot, c.bps, c.table, ranked)
			var got []wallet.Units
			for _, p := range payouts {
				got = append(got, p.Amount)
			}
			if !slices.Equal(got, c.want) || rake != c.rake {
				t.Fatalf("payouts %v and rake %d; want %v and %d", got, rake, c.want, c.rake)
			}
		})
	}
}

func TestSplittingThePotMakesAndLosesNoUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pot := wallet.Units(rapid.Int64Range(1, int64(wallet.MaxUnits)).Draw(t, "pot"))
		bps := rapid.IntRange(0, wallet.FullBps).Draw(t, "bps")
		var table []int
		for left := wallet.FullBps; left > 0; {
			part := rapid.IntRange(0, left).Draw(t, "share")
			if len(table) == 7 {
				part = left
			}
			table = append(table, part)
			left -= part
		}
		var ranked []Placement
		for i := range rapid.IntRange(1, 9).Draw(t, "players") {
			place := i + 1
			if i > 0 && rapid.Bool().Draw(t, "tied") {
				place = ranked[i-1].Place
			}
			ranked = append(ranked, Placement{UserID: int64(i + 1), Place: place})
		}
		payouts, rake := splitPot(pot, bps, table, ranked)
		exact := new(big.Int).Mul(big.NewInt(int64(pot)), big.NewInt(int64(bps)))
		if exact.Quo(exact, big.NewInt(wallet.FullBps)).Int64() != int64(rake) {
			t.Fatalf("the rake is %d, not %v", rake, exact)
		}
		sum := rake
		for i, p := range payouts {
			sum += p.Amount
			if p.Amount < 0 {
				t.Fatalf("player %d gets %d", p.UserID, p.Amount)
			}
			if i > 0 && p.Place == payouts[i-1].Place && (payouts[i-1].Amount-p.Amount > 1 || p.Amount > payouts[i-1].Amount) {
				t.Fatalf("tied players get %d and %d", payouts[i-1].Amount, p.Amount)
			}
		}
		if sum != pot || len(payouts) != len(ranked) {
			t.Fatalf("%d payouts and the rake are %d of %d", len(payouts), sum, pot)
		}
	})
}

func TestPlacementsThatAreNoRankingAreInvalid(t *testing.T) {
	active := []int64{7, 8, 9}
	for name, placements := range map[string][]Placement{
		"empty":        nil,
		"one missing":  {{UserID: 7, Place: 1}, {UserID: 8, Place: 2}},
		"one twice":    {{UserID: 7, Place: 1}, {UserID: 7, Place: 2}, {UserID: 9, Place: 3}},
		"a stranger":   {{UserID: 7, Place: 1}, {UserID: 8, Place: 2}, {UserID: 10, Place: 3}},
		"place 0":      {{UserID: 7, Place: 0}, {UserID: 8, Place: 1}, {UserID: 9, Place: 2}},
		"nobody first": {{UserID: 7, Place: 2}, {UserID: 8, Place: 2}, {UserID: 9, Place: 3}},
	} {
		err := validatePlacements(placements, active)
		if apiErr, ok := apierror.As(err); !ok || apiErr.Code != apierror.InvalidRequest.Code ||
			len(apiErr.FieldErrors) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, placements := range map[string][]Placement{
		"plain":    {{UserID: 9, Place: 2}, {UserID: 7, Place: 3}, {UserID: 8, Place: 1}},
		"tied":     {{UserID: 7, Place: 1}, {UserID: 8, Place: 1}, {UserID: 9, Place: 3}},
		"all tied": {{UserID: 7, Place: 1}, {UserID: 8, Place: 1}, {UserID: 9, Place: 1}},
		"a gap":    {{UserID: 7, Place: 1}, {UserID: 8, Place: 4}, {UserID: 9, Place: 4}},
	} {
		testkit.Report(t, validatePlacements(placements, active), "%s", name)
	}
}

func TestTiedPlayersShareAPlaceHoweverTheNextPlaceIsCounted(t *testing.T) {
	active := []int64{7, 8, 9, 10}
	want := []Placement{{UserID: 8, Place: 1}, {UserID: 9, Place: 1}, {UserID: 7, Place: 3}, {UserID: 10, Place: 4}}
	for _, places := range [][4]int{{3, 1, 1, 4}, {2, 1, 1, 3}, {5, 1, 1, 9}} {
		var given []Placement
		for i, id := range active {
			given = append(given, Placement{UserID: id, Place: places[i]})
		}
		if got := rankPlacements(given, active); encodePlacements(got, nil) != encodePlacements(want, nil) {
			t.Errorf("%v is ranked %s", places, encodePlacements(got, nil))
		}
	}
}

func TestACodeContainsItsShard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := rapid.IntRange(1, 16384).Draw(t, "shards")
		shard := rapid.IntRange(0, shards).Draw(t, "shard")
		code := newCode(shard, shards)
		if got, number, ok := parseCode(code, shards); !ok || number != shard || got != code {
			t.Fatalf("%s of shard %d reads as %s, %d, %v", code, shard, got, number, ok)
		}
	})
	for _, text := range []string{"", "234567", "2345678X", "234567A", "234567ı", "2345671"} {
		if _, _, ok := parseCode(text, 1); ok {
			t.Errorf("%q reads as a code", text)
		}
	}
}
