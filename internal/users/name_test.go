package users_test

import (
	"context"
	"errors"
	"testing"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/users"
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

type hostList []string

func (h hostList) AvatarHosts(context.Context, int64) ([]string, error) { return h, nil }

func TestAvatarsAreAtTheHostsOfTheGame(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db)
		s.RestrictAvatars(hostList{"pictures.example", "*.cdn.example"})
		ada := newPlayer(t, s, 1)
		for avatar, want := range map[string]bool{
			"https://pictures.example/a": true, "https://PICTURES.example:443/a": true, "https://eu.cdn.example/a": true,
			"https://a.b.cdn.example/": true, "https://cdn.example/a": false, "https://evilcdn.example/": false,
			"https://a.pictures.example/": false, "https://evil.example/?pictures.example": false,
		} {
			_, patched := s.Patch(t.Context(), ada, ada.UserID, users.PatchInput{Avatar: new(&avatar)})
			_, made := s.Create(t.Context(), 1, users.KindGuest, users.ProfileInput{Avatar: &avatar})
			for _, err := range []error{patched, made} {
				if (err == nil) != want || err != nil && !errors.Is(err, apierror.InvalidRequest) {
					t.Errorf("%s: %v, allowed is %v", avatar, err, want)
				}
			}
		}
		if _, err := s.Patch(t.Context(), ada, ada.UserID, users.PatchInput{Avatar: new((*string)(nil))}); err != nil {
			t.Errorf("no avatar: %v", err)
		}
	})
}
