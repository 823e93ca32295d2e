package leaderboards

import (
	"testing"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// Whether somebody is a friend, and who it is, costs commands for each: it is asked about the best
// alone.
func TestEntriesOfManyFriendsAskAboutTheBestAlone(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{})
	const friends = 300
	scores := make([]SubmitInput, 0, friends)
	for id := int64(1000); id < 1000+friends; id++ {
		f.people.Friends[1] = append(f.people.Friends[1], id)
		scores = append(scores, SubmitInput{UserID: id, Score: "5"})
	}
	for i := 0; i < len(scores); i += MaxBatch {
		testkit.Must2(f.SubmitBatch(t.Context(), f.server(), f.gameID, "top", scores[i:i+MaxBatch],
			idempotency.Receipt{}))(t)
	}
	f.mustSend(1, "6")
	f.mustSend(stranger, "7") // is listed, and no friend
	list, err := f.FriendEntries(t.Context(), f.player(1), f.gameID, "top", Scope{}, 20)
	if err != nil || len(list) != 20 || list[0].User.ID != 1 || list[1].User.ID != 1000 || list[19].User.ID != 1018 {
		t.Errorf("%v, %v", userIDs(list), err)
	}
	if got := f.people.askedAbout; got > 2*minFriendsChecked {
		t.Errorf("20 entries of %d friends asked about %d players whether they are friends", friends, got)
	}
}
