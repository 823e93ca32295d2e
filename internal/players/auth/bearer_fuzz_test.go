package auth_test

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// FuzzBearer shows any bearer token. None but those that were issued is a caller's.
func FuzzBearer(f *testing.F) {
	db := redistest.Single(f)
	people, all := users.New(db, users.Options{}), newGames(db)
	service := auth.New(db, people, all, &grants{}, auth.Options{
		SigningKeys: [][]byte{signingKey}, AdminKeys: [][]byte{[]byte(adminKey)},
	})
	game, serverKey := testkit.Must2(all.Create(f.Context(), operator, games.Definition{Name: "Chess"}))(f)
	guest := testkit.Must(service.Guest(f.Context(), auth.GuestInput{GameID: game.ID}))(f)
	issued := map[string]bool{adminKey: true, serverKey: true, guest.AccessToken: true}
	f.Add(adminKey)
	header, rest, _ := strings.Cut(guest.AccessToken, ".")
	// Seeds are shared by processes with a store each: no valid token is among them.
	claims, signature, _ := strings.Cut(rest, ".")
	for _, token := range []string{
		"", ".", "..", header + "." + claims + ".", "." + claims + "." + signature, serverKey[:len(serverKey)-1],
		"eyJhbGciOiJub25lIn0." + claims + ".", header + "." + claims + "=." + signature, strings.Repeat("a", 5000),
	} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		got, err := service.Authenticate(t.Context(), token)
		if e, expected := apierror.As(err); err != nil && (!expected || e.Status >= 500) {
			t.Errorf("the token %q returned %v", token, err)
		}
		if err == nil && !issued[token] {
			t.Errorf("the token %q, which was not issued, is of %+v", token, got.Caller)
		}
	})
}
