package progress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const (
	ann   = 7 // plays chess
	bob   = 8 // plays chess
	cleo  = 9 // plays poker
	chess = 3
	poker = 4
)

var (
	oneKey = [][]byte{bytes.Repeat([]byte("k"), 32)}

	annPlayer = player(ann, chess)
)

func player(user, game int64) principal.Caller {
	return principal.Caller{Role: principal.Player, UserID: user, GameID: game}
}

// gameRules are the rules of every game.
type gameRules string

func (r gameRules) ProgressRules(context.Context, int64) ([]byte, error) { return []byte(r), nil }

// gameOfUsers is the game of each user, by user id.
type gameOfUsers map[int64]int64

func (g gameOfUsers) Game(_ context.Context, id int64) (int64, error) {
	game, ok := g[id]
	if !ok {
		return 0, apierror.UserNotFound
	}
	return game, nil
}

// IsGuest reports of bob that he is a guest.
func (g gameOfUsers) IsGuest(_ context.Context, id int64) (bool, error) { return id == bob, nil }

var everybody = gameOfUsers{ann: chess, bob: chess, cleo: poker}

func newService(t testing.TB, db *redisdb.DB, rules string, keys ...[]byte) *Service {
	t.Helper()
	if keys == nil {
		keys = oneKey
	}
	return testkit.Must(New(db, gameRules(rules), everybody, Options{SigningKeys: keys}))(t)
}

func (s *Service) mustSave(t testing.TB, slot, state string, version int64) SaveInfo {
	t.Helper()
	in := SaveInput{Slot: slot, State: wire.RawJSON(state), BaseVersion: version}
	saved := testkit.Must(s.Save(context.Background(), annPlayer, in))(t, "save %s over version %d", state, version)
	if saved.Version != version+1 {
		t.Fatalf("saved over version %d: got version %d", version, saved.Version)
	}
	return saved
}

func (s *Service) mustLoad(t testing.TB, slot, state string, version int64) {
	t.Helper()
	loaded := testkit.Must(s.Load(context.Background(), annPlayer, slot))(t, "load %s", slot)
	if string(loaded.State) != state || loaded.Version != version {
		t.Fatalf("loaded version %d %s, want version %d %s", loaded.Version, loaded.State, version, state)
	}
}

func wantError(t testing.TB, err error, want *apierror.Error) *apierror.Error {
	t.Helper()
	got, ok := apierror.As(err)
	if !ok || !errors.Is(got, want) {
		t.Fatalf("got %v, want %s", err, want.Code)
	}
	return got
}

// onEveryStore runs a test on a single Redis, a Cluster and the embedded store.
func onEveryStore(t *testing.T, test func(t *testing.T, db *redisdb.DB)) {
	t.Helper()
	redistest.Each(t, test)
	t.Run("embedded", func(t *testing.T) {
		db := testkit.Must(redisdb.Open(redisdb.EmbeddedURL))(t)
		t.Cleanup(func() { _ = db.Close() })
		test(t, db)
	})
}

func TestSavesAreLoadedListedAndRestored(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, ""), t.Context()
		if _, err := s.Load(ctx, annPlayer, "main"); !errors.Is(err, apierror.SlotNotFound) {
			t.Fatalf("load an empty slot: %v", err)
		}
		if _, err := s.History(ctx, annPlayer, "main"); !errors.Is(err, apierror.SlotNotFound) {
			t.Fatalf("history of an empty slot: %v", err)
		}
		first := s.mustSave(t, "main", ` { "gold" : 1.50, "name":"\u00e9<é>" } `, 0)
		const stored = `{"gold":1.50,"name":"\u00e9<é>"}`
		s.mustLoad(t, "main", stored, 1)
		if first.SizeBytes != len(stored) || first.SavedAt.IsZero() || first.Slot != "main" {
			t.Fatalf("saved: %+v", first)
		}
		for v := range int64(6) {
			s.mustSave(t, "main", fmt.Sprintf(`{"gold":%d}`, v+2), v+1)
		}
		s.mustSave(t, "a.b-c_1", `{}`, 0)

		list, err := s.List(ctx, annPlayer)
		if err != nil || len(list) != 2 || list[0].Slot != "a.b-c_1" || list[1].Slot != "main" || list[1].Version != 7 ||
			list[1].SizeBytes != len(`{"gold":7}`) {
			t.Fatalf("list: %+v, %v", list, err)
		}
		history, err := s.History(ctx, annPlayer, "main")
		if err != nil || len(history) != MaxVersions {
			t.Fatalf("history: %+v, %v", history, err)
		}
		for i, r := range history {
			if r.Version != int64(7-i) || r.SizeBytes != len(`{"gold":7}`) ||
				r.SavedAt.Before(first.SavedAt) {
				t.Fatalf("history[%d]: %+v", i, r)
			}
		}

		_, err = s.Restore(ctx, annPlayer, RestoreInput{Slot: "main", Version: 2})
		wantError(t, err, apierror.SaveVersionNotFound)
		_, err = s.Restore(ctx, annPlayer, RestoreInput{Slot: "other", Version: 2})
		wantError(t, err, apierror.SlotNotFound)
		_, err = s.Restore(ctx, annPlayer, RestoreInput{Slot: "/", Version: 0})
		if r := wantError(t, err, apierror.InvalidRequest); len(r.FieldErrors) != 2 {
			t.Fatalf("field errors: %+v", r.FieldErrors)
		}
		restored, err := s.Restore(ctx, annPlayer, RestoreInput{Slot: "main", Version: 3})
		if err != nil || restored.Version != 8 {
			t.Fatalf("restore: %+v, %v", restored, err)
		}
		s.mustLoad(t, "main", `{"gold":3}`, 8)

		// Other players, and the same player in other games, see none of it.
		for _, other := range []principal.Caller{player(bob, chess), player(ann, poker)} {
			if list, err := s.List(ctx, other); err != nil || len(list) != 0 {
				t.Fatalf("list of %v: %v, %v", other, list, err)
			}
			_, err := s.Load(ctx, other, "main")
			wantError(t, err, apierror.SlotNotFound)
		}
	})
}

func TestAHistoryIsReadWithoutItsStates(t *testing.T) {
	db := redistest.Single(t)
	s, ctx := newService(t, db, ""), t.Context()
	const stateBytes = 100_000
	for version := range int64(MaxVersions) {
		s.mustSave(t, "main", `{"x":"`+strings.Repeat("x", stateBytes)+`"}`, version)
	}
	bytesSent := func() int {
		_, after, _ := strings.Cut(db.Client.Info(ctx, "stats").Val(), "total_net_output_bytes:")
		number, _, _ := strings.Cut(after, "\r\n")
		return testkit.Must(strconv.Atoi(number))(t)
	}
	before := bytesSent()
	history, err := s.History(ctx, annPlayer, "main")
	if err != nil || len(history) != MaxVersions {
		t.Fatalf("history: %+v, %v", history, err)
	}
	if sent := bytesSent() - before; sent > stateBytes {
		t.Errorf("Redis sent %d bytes for the history of a slot, want none of its states", sent)
	}
}

func TestThePlayerGetsAnEventForEverySaveInOrder(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, ""), t.Context()
		subscription := db.Client.Subscribe(ctx, keys.UserEvents(ann))
		if db.PublishCommand == "SPUBLISH" {
			subscription = db.Client.SSubscribe(ctx, keys.UserEvents(ann))
		}
		defer func() { _ = subscription.Close() }()
		testkit.Must(subscription.Receive(ctx))(t)
		saved := s.mustSave(t, "main", `{"a":1}`, 0)
		s.mustSave(t, "main", `{}`, 1)
		testkit.Must(s.Restore(ctx, annPlayer, RestoreInput{Slot: "main", Version: 1}))(t)
		want := []string{
			`"data":{"gameId":3,"slot":"main","version":1,"savedAt":"` + wire.FormatTime(saved.SavedAt) + `","size":7}}`,
			`"version":2,`,
			`"restoredFrom":1}`,
		}
		entries, err := db.Client.LRange(ctx, keys.UserEvents(ann), 0, -1).Result()
		if err != nil || len(entries) != len(want) {
			t.Fatalf("list: %v, %v", entries, err)
		}
		if ttl := db.Client.PTTL(ctx, keys.UserEvents(ann)).Val(); ttl <= 59*time.Minute || ttl > time.Hour {
			t.Errorf("the list expires in %v, want an hour", ttl)
		}
		for i, entry := range entries {
			message := testkit.Must(subscription.ReceiveMessage(ctx))(t)
			if message.Payload != entry {
				t.Errorf("channel: %s, list: %s", message.Payload, entry)
			}
			rendered, err := events.Render(entry, "")
			if err != nil || len(rendered) != 1 {
				t.Fatalf("event %d: %d events, %v", i, len(rendered), err)
			}
			event := string(rendered[0].JSON)
			if !strings.Contains(event, want[i]) ||
				!strings.HasPrefix(event, `{"type":"user.progress","seq":`+strconv.Itoa(i+1)+`,`) {
				t.Errorf("event %d: %s", i, event)
			}
		}
	})
}

func TestTheListOfEventsKeepsTheNewestOnly(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, ""), t.Context()
		const kept = 32
		for version := range int64(kept + 3) {
			s.mustSave(t, "main", `{}`, version)
		}
		entries, err := db.Client.LRange(ctx, keys.UserEvents(ann), 0, -1).Result()
		if err != nil || len(entries) != kept {
			t.Fatalf("%d entries, %v; want the newest %d", len(entries), err, kept)
		}
		for i, entry := range entries {
			if h, ok := events.ParseHeader(entry); !ok || h.Seq != int64(i+4) {
				t.Errorf("entry %d: %s", i, entry)
			}
		}
	})
}

func TestAStaleSaveConflictsAndReturnsTheStoredState(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, `[{"path":"n","monotonic":"up"}]`), t.Context()
		_, err := s.Save(ctx, annPlayer, SaveInput{Slot: "main", State: wire.RawJSON(`{"n":1}`), BaseVersion: 4})
		if r := wantError(t, err, apierror.VersionConflict); r.ExtraMembers["current"] != nil {
			t.Fatalf("an empty slot has a current state: %v", r.ExtraMembers)
		}
		s.mustSave(t, "main", `{"n":1}`, 0)
		s.mustSave(t, "main", `{"n":2}`, 1)
		for _, version := range []int64{0, 1, 3, 1 << 60} {
			_, err := s.Save(ctx, annPlayer, SaveInput{Slot: "main", State: wire.RawJSON(`{"n":9}`), BaseVersion: version})
			current, ok := wantError(t, err, apierror.VersionConflict).ExtraMembers["current"].(LoadedSave)
			if !ok || current.Version != 2 || string(current.State) != `{"n":2}` || current.SavedAt.IsZero() {
				t.Fatalf("version %d: current %+v", version, current)
			}
		}
		s.mustLoad(t, "main", `{"n":2}`, 2)
	})
}

func TestOfAHundredConcurrentSavesOneWins(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, `[{"path":"n","monotonic":"up"}]`), t.Context()
		for version := range int64(3) {
			var won, lost atomic.Int64
			var all sync.WaitGroup
			for i := range 100 {
				all.Go(func() {
					_, err := s.Save(ctx, annPlayer, SaveInput{
						Slot: "main", State: wire.RawJSON(fmt.Sprintf(`{"n":%d}`, 1000*(version+1)+int64(i))),
						BaseVersion: version, MessageID: "1",
					})
					switch {
					case err == nil:
						won.Add(1)
					case errors.Is(err, apierror.VersionConflict):
						lost.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			all.Wait()
			if won.Load() != 1 || lost.Load() != 99 {
				t.Fatalf("version %d: %d won, %d lost", version, won.Load(), lost.Load())
			}
		}
		if loaded, err := s.Load(ctx, annPlayer, "main"); err != nil || loaded.Version != 3 {
			t.Fatalf("%+v, %v", loaded, err)
		}
	})
}

func TestConcurrentRestoresAndSavesMakeOneChain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, ""), t.Context()
		s.mustSave(t, "main", `{"n":0}`, 0)
		var all sync.WaitGroup
		var made sync.Map
		made.Store(int64(1), true)
		record := func(saved SaveInfo, err error) {
			if errors.Is(err, apierror.VersionConflict) || errors.Is(err, apierror.SaveVersionNotFound) {
				return
			}
			if err != nil {
				t.Error(err)
			} else if _, twice := made.LoadOrStore(saved.Version, true); twice {
				t.Errorf("version %d was made twice", saved.Version)
			}
		}
		for i := range 10 {
			all.Go(func() { record(s.Restore(ctx, annPlayer, RestoreInput{Slot: "main", Version: 1})) })
			all.Go(func() {
				record(s.Save(ctx, annPlayer, SaveInput{Slot: "main", State: wire.RawJSON(`{}`), BaseVersion: int64(i)}))
			})
		}
		all.Wait()
		loaded := testkit.Must(s.Load(ctx, annPlayer, "main"))(t)
		for v := range loaded.Version {
			if _, ok := made.Load(v + 1); !ok {
				t.Errorf("version %d of %d was returned to nobody", v+1, loaded.Version)
			}
		}
	})
}

func TestTheSameMessageIsOneSave(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, `[{"path":"n","maxGainPerMinute":1000}]`), t.Context()
		message := SaveInput{Slot: "main", State: wire.RawJSON(`{"n":1}`), MessageID: "1"}
		first := testkit.Must(s.Save(ctx, annPlayer, message))(t)
		again := func(versions int64) {
			t.Helper()
			if saved, err := s.Save(ctx, annPlayer, message); err != nil || saved != first {
				t.Fatalf("the same message again: %+v, %v; first %+v", saved, err, first)
			}
			if loaded, err := s.Load(ctx, annPlayer, "main"); err != nil || loaded.Version != versions {
				t.Fatalf("%+v, %v", loaded, err)
			}
		}
		again(1)
		// Ids count per connection: another save may come with the same.
		other := SaveInput{Slot: "main", State: wire.RawJSON(`{"n":2}`), BaseVersion: 1, MessageID: "1"}
		testkit.Must(s.Save(ctx, annPlayer, other))(t)
		again(2)
		s.mustSave(t, "main", `{"n":3}`, 2)
		s.mustSave(t, "main", `{"n":4}`, 3)
		s.mustSave(t, "main", `{"n":5}`, 4)
		again(5)
		s.mustSave(t, "main", `{"n":6}`, 5)
		_, err := s.Save(ctx, annPlayer, message) // no longer known, and still nothing is overwritten
		wantError(t, err, apierror.VersionConflict)
		_, err = s.Save(ctx, annPlayer, SaveInput{Slot: "main", State: wire.RawJSON(`{"n":7}`), MessageID: "1"})
		wantError(t, err, apierror.VersionConflict)

		back := RestoreInput{Slot: "main", Version: 4, MessageID: "9"}
		restored, err := s.Restore(ctx, annPlayer, back)
		if err != nil || restored.Version != 7 {
			t.Fatalf("%+v, %v", restored, err)
		}
		if same, err := s.Restore(ctx, annPlayer, back); err != nil || same != restored {
			t.Fatalf("the same restore again: %+v, %v", same, err)
		}
		s.mustSave(t, "main", `{"n":8}`, 7)
		if later, err := s.Restore(ctx, annPlayer, back); err != nil || later.Version != 9 {
			t.Fatalf("a restore after a save: %+v, %v", later, err)
		}
	})
}

func TestAScriptThatIsSentTwiceWritesOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, ""), t.Context()
		id := slotID{ann, chess, "main"}
		next := s.signer.Load().sign(id, record{
			version: 1, messageDigest: messageDigest("", "save", 0, nil), savedAtMS: 1000, sizeBytes: 2, gainBucketsJSON: "{}",
			state: wire.RawJSON(`{}`),
		})
		for i := range 2 {
			w := versionWrite{next: next, eventMembers: []byte(`"size":2`)}
			stored, err := s.store.write(ctx, id, w, room{maxBytes: MaxTotalBytes})
			if err != nil || stored.version != 1 || stored.savedAtMS != 1000 || stored.sizeBytes != 2 {
				t.Fatalf("time %d: %+v, %v", i, stored, err)
			}
		}
		if n := db.Client.LLen(ctx, keys.UserEvents(ann)).Val(); n != 1 {
			t.Fatalf("%d events", n)
		}
	})
}

func TestASaveThatWasCheckedAgainstAnotherVersionIsNotWritten(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, ""), t.Context()
		s.mustSave(t, "main", `{"n":1}`, 0)
		id := slotID{ann, chess, "main"}
		next := s.signer.Load().sign(id, record{
			version: 2, messageDigest: "m", gainBucketsJSON: "{}",
			state: wire.RawJSON(`{"n":0}`),
		})
		for _, checked := range []int64{notChecked, 0} {
			w := versionWrite{baseVersion: 1, checkedVersion: checked, next: next, eventMembers: []byte(`"size":2`)}
			if _, err := s.store.write(ctx, id, w, room{maxBytes: MaxTotalBytes}); !errors.Is(err, redisdb.ErrStale) {
				t.Fatalf("checked against %d: %v", checked, err)
			}
		}
		s.mustLoad(t, "main", `{"n":1}`, 1)
	})
}

func TestLimitsOfASave(t *testing.T) {
	db := redistest.Single(t)
	s := newService(t, db, "")
	nested := func(n int) string { return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1) }
	sized := func(n int) string { return `{"s":"` + strings.Repeat("x", n-len(`{"s":""}`)) + `"}` }
	for _, c := range []struct {
		name, slot, state string
		version           int64
		want              *apierror.Error
		fields            string
	}{
		{"largest", "a", sized(MaxStateBytes), 0, nil, ""},
		{"largest with spaces around", "b", strings.Repeat(" ", 1000) + sized(MaxStateBytes), 0, nil, ""},
		{"too large", "c", sized(MaxStateBytes + 1), 0, apierror.PayloadTooLarge, ""},
		{"far too large, and no JSON", "c", strings.Repeat("[", 4*MaxStateBytes), 0, apierror.PayloadTooLarge, ""},
		{"deepest", "c", nested(MaxStateDepth), 0, nil, ""},
		{"too deep", "d", nested(MaxStateDepth + 1), 0, apierror.InvalidRequest, "state depth"},
		{"very deep", "d", strings.Repeat("[", MaxStateBytes), 0, apierror.InvalidRequest, "state syntax"},
		{"brackets in strings have no depth", "d", `{"a":"` + strings.Repeat(`[{\"`, 100) + `"}`, 0, nil, ""},
		{"array", "e", `[1]`, 0, apierror.InvalidRequest, "state type"},
		{"null", "e", `null`, 0, apierror.InvalidRequest, "state type"},
		{"absent", "e", ``, 0, apierror.InvalidRequest, "state required"},
		{"cut", "e", `{"a":1`, 0, apierror.InvalidRequest, "state syntax"},
		{"trailing", "e", `{} {}`, 0, apierror.InvalidRequest, "state syntax"},
		{"twice", "e", `{"a":1,"a":2}`, 0, apierror.InvalidRequest, "state duplicate"},
		{"twice, in disguise", "e", `{"x":{"a":1,"\u0061":2}}`, 0, apierror.InvalidRequest, "state duplicate"},
		{"not UTF-8", "e", "{\"a\":\"\xff\"}", 0, apierror.InvalidRequest, "state syntax"},
		{"infinite", "e", `{"a":1e999}`, 0, apierror.InvalidRequest, "state range"},
		{"half a pair", "e", `{"a":"\ud800"}`, 0, apierror.InvalidRequest, "state syntax"},
		{"long name", strings.Repeat("n", 64), `{}`, 0, nil, ""},
		{"too long name", strings.Repeat("n", 65), `{}`, 0, apierror.InvalidRequest, "slot format"},
		{"no name", "", `{}`, 0, apierror.InvalidRequest, "slot format"},
		{"everything", "a:b", `[]`, -1, apierror.InvalidRequest, "slot format, version range, state type"},
		{"line end", "main\n", `{}`, 0, apierror.InvalidRequest, "slot format"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.Save(t.Context(), annPlayer, SaveInput{
				Slot: c.slot, State: wire.RawJSON(c.state),
				BaseVersion: c.version,
			})
			if c.want == nil {
				testkit.Check(t, err)
				return
			}
			var fields []string
			for _, f := range wantError(t, err, c.want).FieldErrors {
				fields = append(fields, f.Field+" "+f.Code)
			}
			if got := strings.Join(fields, ", "); got != c.fields {
				t.Fatalf("field errors: %s, want %s", got, c.fields)
			}
		})
	}
	for _, slot := range []string{"", "a b", "é"} {
		_, err := s.Load(t.Context(), annPlayer, slot)
		wantError(t, err, apierror.InvalidRequest)
		_, err = s.History(t.Context(), annPlayer, slot)
		wantError(t, err, apierror.InvalidRequest)
	}
}

func TestThereAreSixteenSlots(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, ""), t.Context()
		var full, won atomic.Int64
		var all sync.WaitGroup
		for i := range 2 * MaxSlots {
			all.Go(func() {
				_, err := s.Save(ctx, annPlayer, SaveInput{Slot: "s" + strconv.Itoa(i), State: wire.RawJSON(`{}`)})
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, apierror.LimitReached):
					full.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != MaxSlots || full.Load() != MaxSlots {
			t.Fatalf("%d won, %d were refused", won.Load(), full.Load())
		}
		list, err := s.List(ctx, annPlayer)
		if err != nil || len(list) != MaxSlots {
			t.Fatalf("%d slots, %v", len(list), err)
		}
		s.mustSave(t, list[0].Slot, `{"a":1}`, 1)
		testkit.Must(s.Save(ctx, player(bob, chess), SaveInput{Slot: "mine", State: wire.RawJSON(`{}`)}))(t)
	})
}

func TestAnAlteredSaveIsNeverReturned(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, `[{"path":"gold","maxGainPerMinute":100}]`), t.Context()
		s.mustSave(t, "main", `{"gold":1}`, 0)
		s.mustSave(t, "main", `{"gold":2}`, 1)
		s.mustSave(t, "main", `{"gold":3}`, 2)
		key := keys.Save(ann, chess, "main")
		testkit.Check(t, db.Client.HSet(ctx, key, "3", `{"gold":9}`).Err())
		_, err := s.Load(ctx, annPlayer, "main")
		r := wantError(t, err, apierror.SaveTampered)
		intact, ok := r.ExtraMembers["intact"].([]Revision)
		if !ok || len(intact) != 2 || intact[0].Version != 2 || r.ExtraMembers["version"] != int64(3) {
			t.Fatalf("members: %+v", r.ExtraMembers)
		}
		for _, version := range []int64{1, 3} { // neither as the current state of a conflict nor to compare with
			_, err = s.Save(ctx, annPlayer, SaveInput{Slot: "main", State: wire.RawJSON(`{"gold":10}`), BaseVersion: version})
			wantError(t, err, apierror.SaveTampered)
		}
		_, err = s.Restore(ctx, annPlayer, RestoreInput{Slot: "main", Version: 3})
		wantError(t, err, apierror.SaveTampered)
		history, err := s.History(ctx, annPlayer, "main")
		if err != nil || len(history) != 3 || history[0].Version != 3 {
			t.Fatalf("%+v, %v", history, err)
		}
		testkit.Must(s.Restore(ctx, annPlayer, RestoreInput{Slot: "main", Version: 2}))(t)
		s.mustLoad(t, "main", `{"gold":2}`, 4)
		s.mustSave(t, "main", `{"gold":4}`, 4)

		// Records of other slots and versions, other times, fuller buckets.
		mark, state := db.Client.HGet(ctx, key, "5:mark").Val(), db.Client.HGet(ctx, key, "5").Val()
		for name, fields := range map[string][]any{
			"another version": {"6:mark", mark, "6", state, "ver", "6"},
			"another time":    {"5:mark", markWith(mark, 1, "1")},
			"another size":    {"5:mark", markWith(mark, 2, "1")},
			"another key":     {"5:mark", markWith(mark, 3, "00000000")},
			"a full bucket":   {"5:mark", markWith(mark, 5, "{}")},
			"nothing":         {"5:mark", ""},
		} {
			testkit.Check(t, db.Client.HSet(ctx, key, fields...).Err())
			testkit.Fails(s.Load(ctx, annPlayer, "main"))(t, apierror.SaveTampered, "%s", name)
			db.Client.HDel(ctx, key, "6", "6:mark")
			db.Client.HSet(ctx, key, "5:mark", mark, "5", state, "ver", "5")
			s.mustLoad(t, "main", `{"gold":4}`, 5)
		}
		for _, other := range []principal.Caller{player(bob, chess), player(ann, poker)} {
			db.Client.HSet(ctx, keys.Save(other.UserID, other.GameID, "main"), "5:mark", mark, "5", state, "ver", "5")
			_, err = s.Load(ctx, other, "main")
			wantError(t, err, apierror.SaveTampered)
		}
		db.Client.HSet(ctx, keys.Save(ann, chess, "copy"), "5:mark", mark, "5", state, "ver", "5")
		_, err = s.Load(ctx, annPlayer, "copy")
		if r := wantError(t, err, apierror.SaveTampered); len(r.ExtraMembers["intact"].([]Revision)) != 0 {
			t.Fatalf("members: %+v", r.ExtraMembers)
		}
		// Without a valid version the player may start again.
		s.mustSave(t, "copy", `{"gold":1}`, 5)
		s.mustLoad(t, "copy", `{"gold":1}`, 6)
	})
}

// markWith returns what is stored beside a state, with another value of one part.
func markWith(mark string, part int, value string) string {
	parts := strings.Split(mark, " ")
	parts[part] = value
	return strings.Join(parts, " ")
}

func TestKeysRotate(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		oldKey, newKey := bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("y"), 32)
		newService(t, db, "", oldKey).mustSave(t, "main", `{"a":1}`, 0)
		both := newService(t, db, "", newKey, oldKey)
		both.mustLoad(t, "main", `{"a":1}`, 1)
		_, err := newService(t, db, "", newKey).Load(t.Context(), annPlayer, "main")
		wantError(t, err, apierror.SaveTampered)
		both.mustSave(t, "main", `{"a":2}`, 1)
		newService(t, db, "", newKey).mustLoad(t, "main", `{"a":2}`, 2)
		_, err = newService(t, db, "", oldKey).Load(t.Context(), annPlayer, "main")
		wantError(t, err, apierror.SaveTampered)
	})
	if _, err := New(nil, gameRules(""), everybody, Options{}); err == nil {
		t.Error("a service without a key")
	}
}

func TestASaveThatViolatesARuleChangesNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		ctx := t.Context()
		s := newService(t, db, `[{"path":"hero.gold","maxGainPerMinute":100},{"path":"hero.level","max":9}]`)
		s.mustSave(t, "main", `{"hero":{"gold":10,"level":1}}`, 0)
		s.mustSave(t, "main", `{"hero":{"gold":60,"level":1}}`, 1)
		_, err := s.Save(ctx, annPlayer, SaveInput{
			Slot: "main", State: wire.RawJSON(`{"hero":{"gold":1000000,"level":10}}`), BaseVersion: 2, MessageID: "1",
		})
		r := wantError(t, err, apierror.SaveRejected)
		if r.ExtraMembers["rule"] != "maxGainPerMinute" || r.ExtraMembers["path"] != "hero.gold" || len(r.FieldErrors) != 2 ||
			r.FieldErrors[1].Field != "state.hero.level" {
			t.Fatalf("%+v", r)
		}
		s.mustLoad(t, "main", `{"hero":{"gold":60,"level":1}}`, 2)
		// The bucket is empty: no more than 50 and what the time since then allows.
		_, err = s.Save(ctx, annPlayer, SaveInput{
			Slot: "main", State: wire.RawJSON(`{"hero":{"gold":155,"level":1}}`), BaseVersion: 2,
		})
		wantError(t, err, apierror.SaveRejected)
		s.mustSave(t, "main", `{"hero":{"gold":110,"level":1}}`, 2)
	})
}

func TestServerOnlyFieldsAreTheServers(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		ctx := t.Context()
		s := newService(t, db, `[{"path":"hero.gems","serverOnly":true},{"path":"hero.xp","monotonic":"up"}]`)
		s.mustSave(t, "main", `{"hero":{"gems":999,"xp":1},"a":1}`, 0)
		s.mustLoad(t, "main", `{"hero":{"xp":1},"a":1}`, 1)
		server := principal.Caller{Role: principal.Server, GameID: chess}
		replace := func(state string, version int64) error {
			_, err := s.ReplaceState(ctx, server, ReplaceInput{
				UserID: ann, Slot: "main", State: wire.RawJSON(state), BaseVersion: version,
			})
			return err
		}
		wantError(t, replace(`{"hero":{"gems":5,"xp":0}}`, 1), apierror.SaveRejected) // xp goes down
		testkit.Check(t, replace(`{"hero":{"gems":5,"xp":1}}`, 1))
		s.mustSave(t, "main", `{"hero":{"xp":2},"b":1}`, 2)
		s.mustLoad(t, "main", `{"hero":{"xp":2,"gems":5},"b":1}`, 3)
		testkit.Check(t, replace(`{"hero":{"gems":0,"xp":2}}`, 3))
		// What was spent does not come back with an older version.
		testkit.Must(s.Restore(ctx, annPlayer, RestoreInput{Slot: "main", Version: 3}))(t)
		s.mustLoad(t, "main", `{"hero":{"xp":2,"gems":0},"b":1}`, 5)
		testkit.Check(t, replace(`{"hero":{"xp":3}}`, 5)) // the whole state: gems are gone
		s.mustLoad(t, "main", `{"hero":{"xp":3}}`, 6)
	})
}

// What was accepted once may be more than a player can have now: gold that was spent, a loss that
// was suffered.
func TestARestoredVersionIsJudgedAgainstTheNewest(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, `[{"path":"gold","maxGainPerMinute":1},{"path":"losses","monotonic":"up"},`+
			`{"path":"seed","immutable":true}]`), t.Context()
		restore := func(version int64) error {
			_, err := s.Restore(ctx, annPlayer, RestoreInput{Slot: "main", Version: version})
			return err
		}
		s.mustSave(t, "main", `{"gold":100,"losses":0}`, 0)
		s.mustSave(t, "main", `{"gold":0,"losses":5,"seed":"A"}`, 1)
		r := wantError(t, restore(1), apierror.SaveRejected)
		var broken []string
		for _, f := range r.FieldErrors {
			broken = append(broken, f.Field)
		}
		if got := strings.Join(broken, " "); got != "state.gold state.losses state.seed" {
			t.Errorf("the restore breaks %s, want gold, losses and seed", got)
		}
		s.mustLoad(t, "main", `{"gold":0,"losses":5,"seed":"A"}`, 2)

		// A restore is paid from the same bucket as a save: one gold is there, and not a second time.
		s.mustSave(t, "main", `{"gold":1,"losses":5,"seed":"A"}`, 2)
		s.mustSave(t, "main", `{"gold":0,"losses":5,"seed":"A"}`, 3)
		wantError(t, restore(3), apierror.SaveRejected)
		testkit.Report(t, restore(2), "a restore that breaks no rule")
	})
}

func TestRulesOfSlots(t *testing.T) {
	db := redistest.Single(t)
	s, ctx := newService(t, db, `[{"path":"gold","max":10,"slots":["bag"]},{"slots":["bag","main"]}]`), t.Context()
	s.mustSave(t, "main", `{"gold":11}`, 0)
	_, err := s.Save(ctx, annPlayer, SaveInput{Slot: "bag", State: wire.RawJSON(`{"gold":11}`)})
	if r := wantError(t, err, apierror.SaveRejected); r.ExtraMembers["path"] != "gold" {
		t.Errorf("the rule of the slot: %v", r.ExtraMembers)
	}
	_, err = s.Save(ctx, annPlayer, SaveInput{Slot: "other", State: wire.RawJSON(`{}`)})
	r := wantError(t, err, apierror.SaveRejected)
	if r.ExtraMembers["rule"] != "slots" || len(r.FieldErrors) != 1 || r.FieldErrors[0].Field != "slot" {
		t.Errorf("a slot that the game has not: %v %v", r.ExtraMembers, r.FieldErrors)
	}
}

func TestASlotHasNoNameThatAddressesUse(t *testing.T) {
	s := newService(t, redistest.Single(t), "")
	for _, name := range []string{".", "..", "", "a/b", "é"} {
		for verb, err := range map[string]error{
			"save":    second(s.Save(t.Context(), annPlayer, SaveInput{Slot: name, State: wire.RawJSON(`{}`)})),
			"load":    second(s.Load(t.Context(), annPlayer, name)),
			"history": second(s.History(t.Context(), annPlayer, name)),
			"restore": second(s.Restore(t.Context(), annPlayer, RestoreInput{Slot: name, Version: 1})),
			"replace": second(s.ReplaceState(t.Context(), principal.Caller{Role: principal.Operator},
				ReplaceInput{UserID: ann, Slot: name, State: wire.RawJSON(`{}`)})),
		} {
			testkit.WantError(t, err, apierror.InvalidRequest, "%s of the slot %q", verb, name)
		}
	}
	s.mustSave(t, "...", `{}`, 0)
}

func second[T any](_ T, err error) error { return err }

func TestWhoMayUseWhichSave(t *testing.T) {
	db := redistest.Single(t)
	s, ctx := newService(t, db, ""), t.Context()
	s.mustSave(t, "main", `{}`, 0)
	testkit.Must(s.Save(ctx, player(cleo, poker), SaveInput{Slot: "main", State: wire.RawJSON(`{}`)}))(t)
	server := func(game int64) principal.Caller { return principal.Caller{Role: principal.Server, GameID: game} }
	forbidden, unknown, ok := apierror.Forbidden, apierror.UserNotFound, (*apierror.Error)(nil)
	type results map[int64]*apierror.Error
	operator := principal.Caller{Role: principal.Operator}
	nobodys := results{ann: forbidden, bob: forbidden, cleo: forbidden, 999: forbidden, 0: forbidden}
	for _, c := range []struct {
		name    string
		caller  principal.Caller
		own     *apierror.Error // of the methods for the caller's own saves
		replace results         // of ReplaceState, by user
	}{
		{"nobody", principal.Caller{}, forbidden, nobodys},
		{"player", annPlayer, ok, nobodys},
		{"server", server(chess), forbidden, results{ann: ok, cleo: unknown, 999: unknown, 0: unknown}},
		{"another server", server(poker), forbidden, results{ann: unknown, cleo: ok, 999: unknown}},
		{"operator", operator, forbidden, results{ann: ok, cleo: ok, 999: unknown, 0: unknown}},
		{"system", principal.Caller{Role: principal.System}, forbidden, nobodys},
	} {
		for verb, call := range map[string]func() error{
			"save": func() error {
				_, err := s.Save(ctx, c.caller, SaveInput{Slot: c.name[:1], State: wire.RawJSON(`{}`)})
				return err
			},
			"load":    func() error { _, err := s.Load(ctx, c.caller, "main"); return err },
			"list":    func() error { _, err := s.List(ctx, c.caller); return err },
			"history": func() error { _, err := s.History(ctx, c.caller, "main"); return err },
			"restore": func() error { _, err := s.Restore(ctx, c.caller, RestoreInput{Slot: "main", Version: 1}); return err },
		} {
			if got := call(); !sameError(got, c.own) {
				t.Errorf("%s by %s: got %v, want %v", verb, c.name, got, c.own)
			}
		}
		for user, want := range c.replace {
			in := ReplaceInput{UserID: user, Slot: "of-" + string(c.caller.Role), State: wire.RawJSON(`{}`)}
			if _, err := s.ReplaceState(ctx, c.caller, in); !sameError(err, want) {
				t.Errorf("replace of user %d by %s: got %v, want %v", user, c.name, err, want)
			}
		}
	}
}

// sameError reports whether an error has the code of want, or is nil when want is.
func sameError(got error, want *apierror.Error) bool {
	if want == nil {
		return got == nil
	}
	return errors.Is(got, want)
}

func TestAReplacedStateIsAVersionLikeAnyOther(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, `[{"path":"n","max":9}]`), t.Context()
		server := principal.Caller{Role: principal.Server, GameID: chess}
		in := ReplaceInput{UserID: ann, Slot: "main", State: wire.RawJSON(` {"n":1} `)}
		first, err := s.ReplaceState(ctx, server, in)
		if err != nil || first.Version != 1 || first.Slot != "main" || first.SizeBytes != len(`{"n":1}`) {
			t.Fatalf("%+v, %v", first, err)
		}
		// The same request again, after its response was lost.
		if again, err := s.ReplaceState(ctx, server, in); err != nil || again != first {
			t.Fatalf("again: %+v, %v; first %+v", again, err, first)
		}
		s.mustLoad(t, "main", `{"n":1}`, 1)
		in.State = wire.RawJSON(`{"n":2}`)
		_, err = s.ReplaceState(ctx, server, in)
		current, ok := wantError(t, err, apierror.VersionConflict).ExtraMembers["current"].(LoadedSave)
		if !ok || current.Version != 1 {
			t.Fatalf("current %+v", current)
		}
		s.mustSave(t, "main", `{"n":3}`, 1)
		in.BaseVersion, in.State = 2, wire.RawJSON(`{"n":10}`)
		_, err = s.ReplaceState(ctx, server, in)
		wantError(t, err, apierror.SaveRejected)
		in.Slot, in.BaseVersion, in.State = "/", -1, wire.RawJSON(`[]`)
		_, err = s.ReplaceState(ctx, server, in)
		if e := wantError(t, err, apierror.InvalidRequest); len(e.FieldErrors) != 3 {
			t.Fatalf("field errors: %+v", e.FieldErrors)
		}
		s.mustLoad(t, "main", `{"n":3}`, 2)
		if n := db.Client.LLen(ctx, keys.UserEvents(ann)).Val(); n != 2 {
			t.Errorf("the player got %d events, want 2", n)
		}
	})
}

func TestShadowRulesAreOnlyLogged(t *testing.T) {
	var log bytes.Buffer
	s := testkit.Must(New(
		redistest.Single(t),
		gameRules(`[{"path":"n","max":5,"mode":"shadow"},{"path":"g","serverOnly":true,"mode":"shadow"}]`),
		everybody,
		Options{SigningKeys: oneKey, Log: slog.New(slog.NewJSONHandler(&log, nil))},
	))(t)
	s.mustSave(t, "main", `{"n":6,"g":1}`, 0)
	s.mustLoad(t, "main", `{"n":6,"g":1}`, 1)
	for _, want := range []string{`"rule":"max"`, `"rule":"serverOnly"`, `"path":"n"`, `"user":7`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, log.String())
		}
	}
}

func TestRulesThatCannotBeParsedStopSaves(t *testing.T) {
	s := newService(t, redistest.Single(t), `[{"path":"n"}]`)
	_, err := s.Save(t.Context(), annPlayer, SaveInput{Slot: "main", State: wire.RawJSON(`{}`)})
	if _, expected := apierror.As(err); err == nil || expected {
		t.Fatalf("got %v, want an internal error", err)
	}
}

func TestAnUnreachableStoreIsReported(t *testing.T) {
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	defer func() { _ = db.Close() }()
	s := newService(t, db, "")
	s.mustSave(t, "main", `{}`, 0)
	server.Kill()
	_, err := s.Save(t.Context(), annPlayer, SaveInput{Slot: "main", State: wire.RawJSON(`{}`), BaseVersion: 1})
	wantError(t, err, apierror.StoreUnavailable)
	_, err = s.Load(t.Context(), annPlayer, "main")
	wantError(t, err, apierror.StoreUnavailable)
	_, err = s.List(t.Context(), annPlayer)
	wantError(t, err, apierror.StoreUnavailable)
	_, err = s.History(t.Context(), annPlayer, "main")
	wantError(t, err, apierror.StoreUnavailable)
}

// model is the expected content of a slot.
type model struct {
	states []string // version n is states[n-1]
}

func TestAnySequenceKeepsTheChain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := newService(t, db, `[{"path":"n","max":50}]`), t.Context()
		run := int64(0)
		rapid.Check(t, func(t *rapid.T) {
			run++
			user := 100 + run
			slots := map[string]*model{"a": {}, "b": {}}
			for range rapid.IntRange(1, 25).Draw(t, "steps") {
				slot := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "slot")
				m := slots[slot]
				newest := int64(len(m.states))
				version := rapid.Int64Range(max(0, newest-2), newest+1).Draw(t, "version")
				switch rapid.IntRange(0, 3).Draw(t, "verb") {
				case 0, 1:
					n := rapid.IntRange(0, 60).Draw(t, "n")
					state := fmt.Sprintf(`{"n":%d,"v":%d}`, n, newest)
					in := SaveInput{Slot: slot, State: wire.RawJSON(state), BaseVersion: version, MessageID: "m"}
					saved, err := s.Save(ctx, player(user, chess), in)
					switch {
					case version != newest:
						if !errors.Is(err, apierror.VersionConflict) {
							t.Fatalf("save over %d of %d: %v", version, newest, err)
						}
					case n > 50:
						if !errors.Is(err, apierror.SaveRejected) {
							t.Fatalf("save of %s: %v", state, err)
						}
					case err != nil || saved.Version != newest+1:
						t.Fatalf("save over %d: %+v, %v", version, saved, err)
					default:
						m.states = append(m.states, state)
						if again, err := s.Save(ctx, player(user, chess), in); err != nil || again != saved {
							t.Fatalf("again: %+v, %v", again, err)
						}
					}
				case 2:
					if version == 0 {
						continue
					}
					_, err := s.Restore(ctx, player(user, chess), RestoreInput{Slot: slot, Version: version})
					switch {
					case newest == 0:
						if !errors.Is(err, apierror.SlotNotFound) {
							t.Fatalf("restore in an empty slot: %v", err)
						}
					case version > newest:
						if !errors.Is(err, apierror.SaveVersionNotFound) {
							t.Fatalf("restore %d of %d: %v", version, newest, err)
						}
					case err != nil:
						t.Fatalf("restore %d of %d: %v", version, newest, err)
					default:
						m.states = append(m.states, m.states[version-1])
					}
				}
				newest = int64(len(m.states))
				loaded, err := s.Load(ctx, player(user, chess), slot)
				if newest == 0 {
					if !errors.Is(err, apierror.SlotNotFound) {
						t.Fatalf("load: %v", err)
					}
					continue
				}
				if err != nil || loaded.Version != newest || string(loaded.State) != m.states[newest-1] {
					t.Fatalf("load: %+v, %v; want %d %s", loaded, err, newest, m.states[newest-1])
				}
				history, err := s.History(ctx, player(user, chess), slot)
				if err != nil || len(history) != min(len(m.states), MaxVersions) {
					t.Fatalf("history: %+v, %v", history, err)
				}
				for i, r := range history {
					if want := newest - int64(i); r.Version != want || r.SizeBytes != len(m.states[want-1]) {
						t.Fatalf("history[%d]: %+v", i, r)
					}
				}
			}
		})
	})
}

func BenchmarkSave(b *testing.B) {
	for _, size := range []int{1 << 10, MaxStateBytes} {
		for name, rules := range map[string]string{
			"no rules": "", "rules": `[{"path":"gold","maxGainPerMinute":100},{"path":"name","maxLength":9}]`,
		} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				s := newService(b, redistest.Single(b), rules)
				state := wire.RawJSON(`{"gold":1,"name":"ann","data":["` + strings.Repeat(`word","`, size/7-10) + `"]}`)
				b.ReportAllocs()
				var version int64
				for b.Loop() {
					s.mustSave(b, "main", string(state), version)
					version++
				}
			})
		}
	}
}

func TestTheVersionsOfAPlayerAreBoundedTogether(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		for _, c := range []struct {
			user int64
			max  int
		}{{bob, MaxGuestTotalBytes}, {ann, MaxTotalBytes}} {
			s, caller, ctx := newService(t, db, ""), player(c.user, chess), t.Context()
			state := wire.RawJSON(`{"x":"` + strings.Repeat("x", 200<<10) + `"}`)
			kept := func(slot string) (versions []int64) {
				history := testkit.Must(s.History(ctx, caller, slot))(t)
				for _, r := range history {
					versions = append(versions, r.Version)
				}
				return versions
			}
			total := func() (bytes int) {
				list := testkit.Must(s.List(ctx, caller))(t)
				for _, saved := range list {
					bytes += len(kept(saved.Slot)) * len(state)
				}
				return bytes
			}
			save := func(slot string, version int64) error {
				_, err := s.Save(ctx, caller, SaveInput{Slot: slot, State: state, BaseVersion: version})
				return err
			}
			for version := range int64(3) {
				testkit.Check(t, save("a", version))
			}
			fit := c.max / len(state)
			slots := 1
			var err error
			for ; slots < MaxSlots && err == nil; slots++ {
				if err = save(fmt.Sprint("b", slots), 0); err != nil {
					break
				}
				if total() > c.max {
					t.Fatalf("%d bytes in %d slots, at most %d", total(), slots+1, c.max)
				}
			}
			if slots != min(fit, MaxSlots) {
				t.Errorf("user %d has %d slots, want %d", c.user, slots, min(fit, MaxSlots))
			}
			if c.user == bob {
				r := wantError(t, err, apierror.LimitReached)
				if r.ExtraMembers["limit"] != "bytes" || r.ExtraMembers["max"] != c.max {
					t.Errorf("the limit is reported as %v", r.ExtraMembers)
				}
				if got := kept("a"); len(got) != 1 || got[0] != 3 {
					t.Errorf("the first slot keeps %v, want the newest only", got)
				}
				testkit.Report(t, save("a", 3)) // over the version that goes
			}
			stored := db.Client.HGet(ctx, keys.Saves(c.user, chess), keys.SavesBytesField).Val()
			if stored != strconv.Itoa(total()) {
				t.Errorf("the list of slots counts %s bytes, there are %d", stored, total())
			}
		}
	})
}

func TestTheOldestVersionGoesFirst(t *testing.T) {
	db := redistest.Single(t)
	s, ctx, caller := newService(t, db, ""), t.Context(), player(bob, chess)
	save := func(slot string, version int64) {
		t.Helper()
		state := wire.RawJSON(`{"x":"` + strings.Repeat("x", 200<<10) + `"}`)
		testkit.Must(s.Save(ctx, caller, SaveInput{Slot: slot, State: state, BaseVersion: version}))(t)
		before := time.Now().UnixMilli()
		for time.Now().UnixMilli() == before { // versions of one millisecond have no order
			runtime.Gosched()
		}
	}
	save("a", 0)
	save("b", 0)
	save("b", 1)
	save("a", 1)
	save("b", 2) // five versions fit
	save("b", 3)
	for slot, want := range map[string]string{"a": "[2]", "b": "[4 3 2 1]"} {
		history := testkit.Must(s.History(ctx, caller, slot))(t)
		var versions []int64
		for _, r := range history {
			versions = append(versions, r.Version)
		}
		if got := fmt.Sprint(versions); got != want {
			t.Errorf("the slot %s keeps %s, want %s", slot, got, want)
		}
	}
}
