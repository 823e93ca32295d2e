package users_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestNamesOfManyScriptsAreAccepted(t *testing.T) {
	for _, name := range []string{
		"Ada", "Ada Lovelace", "José", "李小龙", "김철수", "やまだ", "Ελένη",
		"می\u200cخواهم",           // Persian
		"क्\u200dष",               // Devanagari: the joiner follows a virama
		"ශ්\u200dරී", "ന്\u200dഅ", // Sinhala, Malayalam
		"👩\u200d🚀", "👩🏽\u200d🚀", "❤\ufe0f", "🏳\ufe0f\u200d🌈",
	} {
		if got, err := users.CheckUsername(name); err != nil || got != name {
			t.Errorf("%+q: %q, %v", name, got, err)
		}
	}
}

func TestPlayersChooseNoNameOfStaff(t *testing.T) {
	for _, name := range []string{
		"admin", "ADMIN", "Ⓐdmin", "аdmin", "4dm1n", "Admin_1", "~~ moderator ~~", "sуstem", "Parlor", "Staff!", "sυpport",
		"①Admin",
		"a" + strings.Repeat("\u0336", 8) + "da", "Ada" + strings.Repeat("\u0300", 6),
	} {
		testkit.Fails(users.CheckChosenUsername(name))(t, apierror.InvalidRequest, "%+q", name)
		testkit.Report(t, testkit.ErrorOf(users.CheckUsername(name)), "%+q", name) // a game's server may
	}
	for _, name := range []string{
		"Adam", "Badminton", "Sysadmin", "System of a Down", "Supporter", "Ada", "Việt", "Vie\u0323\u0302t", "李小龙", "སྒྲུབ",
		"👩\u200d🚀", "l1l",
	} {
		if got, err := users.CheckChosenUsername(name); err != nil || got != name {
			t.Errorf("%+q: %q, %v", name, got, err)
		}
	}
}

func TestAPlayerKeepsANameButChoosesNoneOfStaff(t *testing.T) {
	s := users.New(redistest.Single(t), users.Options{})
	ada := newPlayer(t, s, 1)
	server := principal.Caller{Role: principal.Server, GameID: 1}
	patch := func(caller principal.Caller, name string) error {
		_, err := s.Patch(t.Context(), caller, ada.UserID,
			users.PatchInput{Username: &name, Avatar: wire.Given(new("no address"))})
		if e, ok := apierror.As(err); ok && len(e.FieldErrors) == 1 && e.FieldErrors[0].Field == "avatar" {
			_, err = s.Patch(t.Context(), caller, ada.UserID, users.PatchInput{Username: &name})
		}
		return err
	}
	if err := patch(ada, "Ⓐdmin"); err == nil {
		t.Error("a player is called Ⓐdmin")
	} else if e, _ := apierror.As(err); len(e.FieldErrors) != 2 {
		t.Errorf("not every faulty field is listed: %v", err)
	}
	for _, caller := range []principal.Caller{server, ada} {
		testkit.Report(t, patch(caller, "Admin"), "%v", caller.Role)
	}
}

func TestAvatarsAreAtTheHostsOfTheGame(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db, users.Options{AvatarHosts: func(context.Context, int64) ([]string, error) {
			return []string{"pictures.example", "*.cdn.example"}, nil
		}})
		ada := newPlayer(t, s, 1)
		for avatar, want := range map[string]bool{
			"https://pictures.example/a": true, "https://PICTURES.example:443/a": true, "https://eu.cdn.example/a": true,
			"https://a.b.cdn.example/": true, "https://cdn.example/a": false, "https://evilcdn.example/": false,
			"https://a.pictures.example/": false, "https://evil.example/?pictures.example": false,
		} {
			_, patched := s.Patch(t.Context(), ada, ada.UserID, users.PatchInput{Avatar: wire.Given(&avatar)})
			_, made := s.Create(t.Context(), 1, users.KindGuest, users.ProfileInput{Avatar: &avatar})
			for _, err := range []error{patched, made} {
				if (err == nil) != want || err != nil && !errors.Is(err, apierror.InvalidRequest) {
					t.Errorf("%s: %v, allowed is %v", avatar, err, want)
				}
			}
		}
		if _, err := s.Patch(t.Context(), ada, ada.UserID, users.PatchInput{Avatar: wire.Given[string](nil)}); err != nil {
			t.Errorf("no avatar: %v", err)
		}
	})
}
