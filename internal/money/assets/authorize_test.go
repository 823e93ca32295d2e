package assets_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// Who may do what, without the checks of package handlers.
func TestTheRoleOfTheCallerDecides(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	asset := f.createAsset(assets.CreateInput{Price: "1"})
	f.money.Credit("10", 1)
	callers := []principal.Caller{
		{},
		{UserID: 1, GameID: game}, // without a role
		player(1),
		{Role: principal.Player, UserID: 2, GameID: otherGame},
		server,
		{Role: principal.Server, GameID: otherGame},
		operator,
		system,
		{Role: principal.System, GameID: game},
		{Role: "other", GameID: game},
	}
	ok, no := scripts.OK, apierror.Forbidden.Code
	noGame, noAsset := apierror.GameNotFound.Code, apierror.AssetNotFound.Code
	list := func(gameID int64, includeInactive bool) func(principal.Caller) error {
		return func(c principal.Caller) error {
			q := assets.ListQuery{Limit: 10, IncludeInactive: includeInactive}
			_, _, err := f.List(t.Context(), c, gameID, q)
			return err
		}
	}
	for _, c := range []struct {
		verb string
		call func(principal.Caller) error
		want []string // by caller
	}{
		{"create", func(c principal.Caller) error {
			_, err := f.Create(t.Context(), c, game, assets.CreateInput{Name: "Bow", TokenCode: "GOLD", Price: "1"})
			return err
		}, []string{no, no, no, no, ok, noGame, ok, no, no, no}},
		{"patch", func(c principal.Caller) error {
			_, err := f.Patch(t.Context(), c, game, asset.ID, assets.PatchInput{Name: new("Bow")})
			return err
		}, []string{no, no, no, no, ok, noGame, ok, no, no, no}},
		{"patch through the other game", func(c principal.Caller) error {
			_, err := f.Patch(t.Context(), c, otherGame, asset.ID, assets.PatchInput{Name: new("Bow")})
			return err
		}, []string{no, no, no, no, noGame, noAsset, noAsset, no, no, no}},
		{"get", func(c principal.Caller) error {
			_, err := f.Get(t.Context(), c, game, asset.ID)
			return err
		}, []string{no, no, no, no, ok, noGame, ok, no, no, no}},
		{"get through the other game", func(c principal.Caller) error {
			_, err := f.Get(t.Context(), c, otherGame, asset.ID)
			return err
		}, []string{no, no, no, no, noGame, noAsset, noAsset, no, no, no}},
		{"list what is on sale", list(game, false), []string{no, no, ok, noGame, ok, noGame, ok, no, no, no}},
		{"list the other game", list(otherGame, false), []string{no, no, noGame, ok, noGame, ok, ok, no, no, no}},
		{"list all", list(game, true), []string{no, no, no, no, ok, noGame, ok, no, no, no}},
		{"list what is owned", func(c principal.Caller) error {
			_, _, err := f.ListOwned(t.Context(), c, 0, 10)
			return err
		}, []string{no, no, ok, ok, no, no, no, no, no, no}},
		{"purchase", func(c principal.Caller) error {
			_, err := f.Purchase(t.Context(), c, asset.ID, assets.PurchaseInput{Quantity: 1}, noReceipt)
			return err
		}, []string{no, no, ok, noAsset, no, no, no, no, no, no}},
	} {
		domaintest.WantCodes(t, c.verb, callers, c.want, c.call)
	}
}

func TestAnAssetIsNotPatchedThroughAnotherGame(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	asset := f.createAsset(assets.CreateInput{Price: "1"})
	if _, err := f.Patch(t.Context(), operator, otherGame, asset.ID, assets.PatchInput{Active: new(false)}); err == nil {
		t.Error("it is patched")
	}
	got := testkit.Must(f.Get(t.Context(), operator, game, asset.ID))(t)
	if diff := cmp.Diff(asset, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
