package users_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestARecentProfileIsThatOfTheLastChangeOnThisNode(t *testing.T) {
	db := redistest.Single(t)
	here, there := users.New(db, users.Options{}), users.New(db, users.Options{})
	ann := newPlayer(t, here, 1)
	shows := func(s *users.Service) string {
		t.Helper()
		p, err := s.RecentProfile(t.Context(), ann.UserID)
		if err != nil || p.ID != ann.UserID {
			t.Fatalf("%+v, %v", p, err)
		}
		return p.Username
	}
	shows(there)
	for i := range 20 {
		name := fmt.Sprint("Ann ", i)
		var readers sync.WaitGroup
		for range 4 { // a reader that began before the change must not bring the old name back
			readers.Go(func() { _, _ = here.Get(t.Context(), ann, ann.UserID) })
		}
		testkit.Must(here.Patch(t.Context(), ann, ann.UserID, users.PatchInput{Username: &name}))(t)
		readers.Wait()
		if got := shows(here); got != name {
			t.Fatalf("after the change to %q the profile is %q", name, got)
		}
	}
	testkit.Check(t, db.Client.HSet(t.Context(), keys.User(ann.UserID), "username", "Unseen").Err())
	if got := shows(here); got != "Ann 19" {
		t.Errorf("the profile %q was read from the store", got)
	}
	changed := time.Now()
	redistest.Eventually(t, "another node sees the change", func() bool { return shows(there) == "Unseen" })
	if time.Since(changed) > 6*time.Second {
		t.Errorf("a change is seen after %v", time.Since(changed))
	}
	testkit.Fails(here.RecentProfile(t.Context(), 999))(t, apierror.UserNotFound, "the profile of nobody")
}

func TestAProfileIsAppendedAsItIsMarshalled(t *testing.T) {
	avatar := `https://a.example/?x=<1>&y="2"`
	for _, p := range []users.Profile{
		{ID: 1, Username: "Ann"}, {ID: 1 << 50, Username: "a|b\"\\\u2028é\n<&>", Avatar: &avatar}, {},
	} {
		want, err := wire.Marshal(p)
		if got := string(users.AppendProfile([]byte("x"), p)); err != nil || got != "x"+string(want) {
			t.Errorf("%s; want %s, %v", got, want, err)
		}
	}
}
