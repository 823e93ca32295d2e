package leaderboards

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// problems verifies the first season and returns what it finds: "7 is hidden and is in …".
func (f *fixture) problems() string {
	f.t.Helper()
	report := testkit.Must(f.Verify(f.t.Context(), f.server(), f.gameID, "top", 1))(f.t)
	var all []string
	for _, d := range report.Differences {
		all = append(all, fmt.Sprintf("%d %s", d.UserID, d.Problem))
	}
	return strings.Join(all, "\n")
}

func TestVerifyFindsWhatDoesNotFit(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		for _, shards := range []int{1, 8} {
			f := newFixture(t, db)
			f.create(Definition{Shards: shards, Segments: []string{"country"}})
			for id := int64(1); id <= 20; id++ {
				f.mustSend(id, fmt.Sprint(id), func(in *SubmitInput) {
					if id%2 == 0 {
						in.Segments = map[string]string{"country": "DE"}
					}
				})
			}
			for _, id := range []int64{4, 5} {
				testkit.Must(f.SetHidden(t.Context(), f.server(), f.gameID, "top", 0, id, true))(t)
			}
			report, err := f.Verify(t.Context(), f.server(), f.gameID, "top", 1)
			if err != nil || report.Entries != 18 || report.Hidden != 2 || len(report.Differences) != 0 {
				t.Fatalf("a board that fits: %+v, %v", report, err)
			}
			b := testkit.Must(f.load(t.Context(), f.gameID, "top"))(t)
			at := func(id int64) seasonShard { return b.shardOf(&b.seasons[0], id) }
			member := func(id int64) string {
				r := b.ranking(&b.seasons[0])
				return testkit.Must(f.store.readRecords(t.Context(), r, []int64{id}))(t)[id].member
			}
			ctx, client := t.Context(), db.Client
			segment := strings.Replace(at(2).rankKey(), "rank:1", "rank:1:country:DE", 1)
			for _, step := range []struct {
				what    string
				corrupt func() error
				want    string
			}{
				{"not in the order", func() error {
					return client.ZRem(ctx, at(1).rankKey(), member(1)).Err()
				}, "1 has a record and is not in"},
				{"not in its segment", func() error {
					return client.ZRem(ctx, segment, member(2)).Err()
				}, "2 has a record and is not in"},
				{"hidden and in the order", func() error {
					return client.ZAdd(ctx, at(5).rankKey(), redis.Z{Member: member(5)}).Err()
				}, "5 is hidden and is in"},
				{"without a record", func() error { return client.HDel(ctx, at(7).entriesKey(7), "7").Err() }, "7 is in"},
				{"twice", func() error {
					d := b.definitionOf(&b.seasons[0])
					double := encodeMember(d, 999, 0, b.createdAt, 9)
					return client.ZAdd(ctx, at(9).rankKey(), redis.Z{Member: double}).Err()
				}, "9 is in"},
				{"miscounted", func() error {
					return client.HIncrBy(ctx, at(11).stateKey(), "hidden", 1).Err()
				}, "hidden entries and counts"},
				{"a broken record", func() error {
					return client.HSet(ctx, at(13).entriesKey(13), "13", "?").Err()
				}, "13 the record does not have its form"},
			} {
				testkit.Check(t, step.corrupt())
				if got := f.problems(); !strings.Contains(got, step.want) {
					t.Errorf("%s: %q, want %q", step.what, got, step.want)
				}
			}
		}
	})
}

func TestOnlyStaffVerifies(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{})
	testkit.Fails(f.Verify(t.Context(), f.player(1), f.gameID, "top", 1))(t, apierror.Forbidden)
	testkit.Fails(f.Verify(t.Context(), principal.Caller{Role: principal.Operator}, f.gameID, "top", 2))(
		t, apierror.SeasonNotFound)
}
