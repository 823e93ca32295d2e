package progress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const (
	ann   = 7
	bob   = 8
	chess = 3
)

var oneKey = [][]byte{bytes.Repeat([]byte("k"), 32)}

// demands is a game that has these rules.
type demands string

func (d demands) ProgressRules(context.Context, int64) ([]byte, error) { return []byte(d), nil }

func service(t testing.TB, db *redisdb.DB, rules string, keys ...[]byte) *Service {
	t.Helper()
	if keys == nil {
		keys = oneKey
	}
	s, err := New(db, demands(rules), Options{SigningKeys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Service) mustSave(t testing.TB, slot, state string, version int64) Saved {
	t.Helper()
	saved, err := s.Save(context.Background(), ann, chess, SaveInput{Slot: slot, State: jsontext.Value(state), Version: version})
	if err != nil {
		t.Fatalf("save %s over version %d: %v", state, version, err)
	}
	if saved.Version != version+1 {
		t.Fatalf("saved over version %d: got version %d", version, saved.Version)
	}
	return saved
}

func (s *Service) mustLoad(t testing.TB, slot, state string, version int64) {
	t.Helper()
	loaded, err := s.Load(context.Background(), ann, chess, slot)
	if err != nil {
		t.Fatalf("load %s: %v", slot, err)
	}
	if string(loaded.State) != state || loaded.Version != version {
		t.Fatalf("loaded version %d %s, want version %d %s", loaded.Version, loaded.State, version, state)
	}
}

func refused(t testing.TB, err error, want *apierror.Error) *apierror.Error {
	t.Helper()
	got, ok := apierror.As(err)
	if !ok || !errors.Is(got, want) {
		t.Fatalf("got %v, want %s", err, want.Code)
	}
	return got
}

// everywhere runs a story on a single Redis, a Cluster and the embedded store.
func everywhere(t *testing.T, test func(t *testing.T, db *redisdb.DB)) {
	t.Helper()
	redistest.Each(t, test)
	t.Run("embedded", func(t *testing.T) {
		db, err := redisdb.Open(redisdb.EmbeddedURL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		test(t, db)
	})
}

func TestSavesAreLoadedListedAndRestored(t *testing.T) {
	everywhere(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := service(t, db, ""), t.Context()
		if _, err := s.Load(ctx, ann, chess, "main"); !errors.Is(err, apierror.SlotNotFound) {
			t.Fatalf("load an empty slot: %v", err)
		}
		if _, err := s.History(ctx, ann, chess, "main"); !errors.Is(err, apierror.SlotNotFound) {
			t.Fatalf("history of an empty slot: %v", err)
		}
		first := s.mustSave(t, "main", ` { "gold" : 1.50, "name":"\u00e9<é>" } `, 0)
		const stored = `{"gold":1.50,"name":"\u00e9<é>"}`
		s.mustLoad(t, "main", stored, 1)
		if first.Size != len(stored) || first.SavedAt.IsZero() || first.Slot != "main" {
			t.Fatalf("saved: %+v", first)
		}
		for v := range int64(6) {
			s.mustSave(t, "main", fmt.Sprintf(`{"gold":%d}`, v+2), v+1)
		}
		s.mustSave(t, "a.b-c_1", `{}`, 0)

		list, err := s.List(ctx, ann, chess)
		if err != nil || len(list) != 2 || list[0].Slot != "a.b-c_1" || list[1].Slot != "main" || list[1].Version != 7 || list[1].Size != len(`{"gold":7}`) {
			t.Fatalf("list: %+v, %v", list, err)
		}
		history, err := s.History(ctx, ann, chess, "main")
		if err != nil || len(history) != MaxVersions {
			t.Fatalf("history: %+v, %v", history, err)
		}
		for i, r := range history {
			if r.Version != int64(7-i) || !r.SignatureValid || r.Size != len(`{"gold":7}`) || r.SavedAt.Before(first.SavedAt) {
				t.Fatalf("history[%d]: %+v", i, r)
			}
		}

		_, err = s.Restore(ctx, ann, chess, RestoreInput{Slot: "main", Version: 2})
		refused(t, err, apierror.SaveVersionNotFound)
		_, err = s.Restore(ctx, ann, chess, RestoreInput{Slot: "other", Version: 2})
		refused(t, err, apierror.SlotNotFound)
		_, err = s.Restore(ctx, ann, chess, RestoreInput{Slot: "/", Version: 0})
		if r := refused(t, err, apierror.InvalidRequest); len(r.FieldErrors) != 2 {
			t.Fatalf("faults: %+v", r.FieldErrors)
		}
		restored, err := s.Restore(ctx, ann, chess, RestoreInput{Slot: "main", Version: 3})
		if err != nil || restored.Version != 8 {
			t.Fatalf("restore: %+v, %v", restored, err)
		}
		s.mustLoad(t, "main", `{"gold":3}`, 8)

		// Nobody else sees any of it.
		for _, other := range [][2]int64{{bob, chess}, {ann, chess + 1}} {
			if list, err := s.List(ctx, other[0], other[1]); err != nil || len(list) != 0 {
				t.Fatalf("list of %v: %v, %v", other, list, err)
			}
			_, err := s.Load(ctx, other[0], other[1], "main")
			refused(t, err, apierror.SlotNotFound)
		}
	})
}

func TestThePlayerHearsOfEverySaveInOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := service(t, db, ""), t.Context()
		heard := db.Client.Subscribe(ctx, keys.UserEvents(ann))
		if db.PublishCommand == "SPUBLISH" {
			heard = db.Client.SSubscribe(ctx, keys.UserEvents(ann))
		}
		defer func() { _ = heard.Close() }()
		if _, err := heard.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		saved := s.mustSave(t, "main", `{"a":1}`, 0)
		s.mustSave(t, "main", `{}`, 1)
		if _, err := s.Restore(ctx, ann, chess, RestoreInput{Slot: "main", Version: 1}); err != nil {
			t.Fatal(err)
		}
		want := []string{
			`"data":{"gameId":3,"slot":"main","version":1,"savedAt":"` + saved.SavedAt.Format(milliseconds) + `","size":7}}`,
			`"version":2,`,
			`"restoredFrom":1}`,
		}
		entries, err := db.Client.XRange(ctx, keys.UserEvents(ann), "-", "+").Result()
		if err != nil || len(entries) != len(want) {
			t.Fatalf("stream: %v, %v", entries, err)
		}
		for i, entry := range entries {
			message, err := heard.ReceiveMessage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			event := entry.Values["e"].(string)
			if !strings.Contains(event, want[i]) || !strings.HasPrefix(event, `{"type":"user.progress","seq":`+strconv.Itoa(i+1)+`,`) {
				t.Errorf("event %d: %s", i, event)
			}
			if message.Payload != entry.ID+"|"+event {
				t.Errorf("channel: %s, stream: %s", message.Payload, event)
			}
			if !jsontext.Value(event).IsValid() {
				t.Errorf("event %d is no JSON: %s", i, event)
			}
		}
	})
}

func TestAStaleSaveConflictsAndShowsTheServersCopy(t *testing.T) {
	everywhere(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := service(t, db, `[{"path":"n","monotonic":"up"}]`), t.Context()
		_, err := s.Save(ctx, ann, chess, SaveInput{Slot: "main", State: jsontext.Value(`{"n":1}`), Version: 4})
		if r := refused(t, err, apierror.VersionConflict); r.Members["current"] != nil {
			t.Fatalf("an empty slot has a current state: %v", r.Members)
		}
		s.mustSave(t, "main", `{"n":1}`, 0)
		s.mustSave(t, "main", `{"n":2}`, 1)
		for _, version := range []int64{0, 1, 3, 1 << 60} {
			_, err := s.Save(ctx, ann, chess, SaveInput{Slot: "main", State: jsontext.Value(`{"n":9}`), Version: version})
			current, ok := refused(t, err, apierror.VersionConflict).Members["current"].(LoadedSave)
			if !ok || current.Version != 2 || string(current.State) != `{"n":2}` || current.SavedAt.IsZero() {
				t.Fatalf("version %d: current %+v", version, current)
			}
		}
		s.mustLoad(t, "main", `{"n":2}`, 2)
	})
}

func TestOfAHundredSavesAtOnceOneWins(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := service(t, db, `[{"path":"n","monotonic":"up"}]`), t.Context()
		for version := range int64(3) {
			var won, lost atomic.Int64
			var all sync.WaitGroup
			for i := range 100 {
				all.Go(func() {
					_, err := s.Save(ctx, ann, chess, SaveInput{
						Slot: "main", State: jsontext.Value(fmt.Sprintf(`{"n":%d}`, 1000*(version+1)+int64(i))), Version: version, MessageID: "1",
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
		if loaded, err := s.Load(ctx, ann, chess, "main"); err != nil || loaded.Version != 3 {
			t.Fatalf("%+v, %v", loaded, err)
		}
	})
}

func TestRestoresAndSavesAtOnceMakeOneChain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := service(t, db, ""), t.Context()
		s.mustSave(t, "main", `{"n":0}`, 0)
		var all sync.WaitGroup
		var made sync.Map
		made.Store(int64(1), true)
		record := func(saved Saved, err error) {
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
			all.Go(func() { record(s.Restore(ctx, ann, chess, RestoreInput{Slot: "main", Version: 1})) })
			all.Go(func() {
				record(s.Save(ctx, ann, chess, SaveInput{Slot: "main", State: jsontext.Value(`{}`), Version: int64(i)}))
			})
		}
		all.Wait()
		loaded, err := s.Load(ctx, ann, chess, "main")
		if err != nil {
			t.Fatal(err)
		}
		for v := range loaded.Version {
			if _, ok := made.Load(v + 1); !ok {
				t.Errorf("version %d of %d was answered to nobody", v+1, loaded.Version)
			}
		}
	})
}

func TestTheSameMessageIsOneSave(t *testing.T) {
	everywhere(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := service(t, db, `[{"path":"n","monotonic":"up"}]`), t.Context()
		message := SaveInput{Slot: "main", State: jsontext.Value(`{"n":1}`), MessageID: "1"}
		first, err := s.Save(ctx, ann, chess, message)
		if err != nil {
			t.Fatal(err)
		}
		again := func(versions int64) {
			t.Helper()
			if saved, err := s.Save(ctx, ann, chess, message); err != nil || saved != first {
				t.Fatalf("the same message again: %+v, %v; first %+v", saved, err, first)
			}
			if loaded, err := s.Load(ctx, ann, chess, "main"); err != nil || loaded.Version != versions {
				t.Fatalf("%+v, %v", loaded, err)
			}
		}
		again(1)
		// Ids count per connection: another save may come with the same.
		if _, err := s.Save(ctx, ann, chess, SaveInput{Slot: "main", State: jsontext.Value(`{"n":2}`), Version: 1, MessageID: "1"}); err != nil {
			t.Fatal(err)
		}
		again(2)
		s.mustSave(t, "main", `{"n":3}`, 2)
		s.mustSave(t, "main", `{"n":4}`, 3)
		s.mustSave(t, "main", `{"n":5}`, 4)
		again(5)
		s.mustSave(t, "main", `{"n":6}`, 5)
		_, err = s.Save(ctx, ann, chess, message) // forgotten, and still nothing is overwritten
		refused(t, err, apierror.VersionConflict)
		_, err = s.Save(ctx, ann, chess, SaveInput{Slot: "main", State: jsontext.Value(`{"n":7}`), MessageID: "1"})
		refused(t, err, apierror.VersionConflict)

		back := RestoreInput{Slot: "main", Version: 4, MessageID: "9"}
		restored, err := s.Restore(ctx, ann, chess, back)
		if err != nil || restored.Version != 7 {
			t.Fatalf("%+v, %v", restored, err)
		}
		if same, err := s.Restore(ctx, ann, chess, back); err != nil || same != restored {
			t.Fatalf("the same restore again: %+v, %v", same, err)
		}
		s.mustSave(t, "main", `{"n":8}`, 7)
		if later, err := s.Restore(ctx, ann, chess, back); err != nil || later.Version != 9 {
			t.Fatalf("a restore after a save: %+v, %v", later, err)
		}
	})
}

func TestAScriptThatIsSentTwiceWritesOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := service(t, db, ""), t.Context()
		a := address{ann, chess, "main"}
		r := s.signer.seal(a, record{version: 1, message: messageOf("", "save", 0, nil), at: 1000, size: 2, pace: "{}", state: jsontext.Value(`{}`)})
		for i, want := range []string{"ok", "replay"} {
			word, before, err := s.store.write(ctx, a, 0, 0, r, []byte(`{}`))
			if err != nil || word != want {
				t.Fatalf("time %d: %s, %v", i, word, err)
			}
			if word == "replay" && (before.version != 1 || before.at != 1000 || before.size != 2) {
				t.Fatalf("replay: %+v", before)
			}
		}
		if n := db.Client.XLen(ctx, keys.UserEvents(ann)).Val(); n != 1 {
			t.Fatalf("%d events", n)
		}
	})
}

func TestASaveThatWasJudgedAgainstAnotherVersionIsNotWritten(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := service(t, db, ""), t.Context()
		s.mustSave(t, "main", `{"n":1}`, 0)
		a := address{ann, chess, "main"}
		r := s.signer.seal(a, record{version: 2, message: "m", pace: "{}", state: jsontext.Value(`{"n":0}`)})
		if word, _, err := s.store.write(ctx, a, 1, -1, r, []byte(`{}`)); err != nil || word != "stale" {
			t.Fatalf("%s, %v", word, err)
		}
		s.mustLoad(t, "main", `{"n":1}`, 1)
	})
}

func TestLimitsOfASave(t *testing.T) {
	db := redistest.Single(t)
	s := service(t, db, "")
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
		{"deepest", "c", nested(MaxDepth), 0, nil, ""},
		{"too deep", "d", nested(MaxDepth + 1), 0, apierror.InvalidRequest, "state depth"},
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
		{"half a pair", "e", `{"a":"\ud800"}`, 0, apierror.InvalidRequest, "state syntax"},
		{"long name", strings.Repeat("n", 64), `{}`, 0, nil, ""},
		{"too long name", strings.Repeat("n", 65), `{}`, 0, apierror.InvalidRequest, "slot format"},
		{"no name", "", `{}`, 0, apierror.InvalidRequest, "slot format"},
		{"everything", "a:b", `[]`, -1, apierror.InvalidRequest, "slot format, version range, state type"},
		{"line end", "main\n", `{}`, 0, apierror.InvalidRequest, "slot format"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.Save(t.Context(), ann, chess, SaveInput{Slot: c.slot, State: jsontext.Value(c.state), Version: c.version})
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var fields []string
			for _, f := range refused(t, err, c.want).FieldErrors {
				fields = append(fields, f.Field+" "+f.Code)
			}
			if got := strings.Join(fields, ", "); got != c.fields {
				t.Fatalf("faults: %s, want %s", got, c.fields)
			}
		})
	}
	for _, slot := range []string{"", "a b", "é"} {
		_, err := s.Load(t.Context(), ann, chess, slot)
		refused(t, err, apierror.InvalidRequest)
		_, err = s.History(t.Context(), ann, chess, slot)
		refused(t, err, apierror.InvalidRequest)
	}
}

func TestThereAreSixteenSlots(t *testing.T) {
	everywhere(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := service(t, db, ""), t.Context()
		var full, won atomic.Int64
		var all sync.WaitGroup
		for i := range 2 * MaxSlots {
			all.Go(func() {
				_, err := s.Save(ctx, ann, chess, SaveInput{Slot: "s" + strconv.Itoa(i), State: jsontext.Value(`{}`)})
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, apierror.SlotsFull):
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
		list, err := s.List(ctx, ann, chess)
		if err != nil || len(list) != MaxSlots {
			t.Fatalf("%d slots, %v", len(list), err)
		}
		s.mustSave(t, list[0].Slot, `{"a":1}`, 1)
		if _, err := s.Save(ctx, bob, chess, SaveInput{Slot: "mine", State: jsontext.Value(`{}`)}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAnAlteredSaveIsNeverHandedOut(t *testing.T) {
	everywhere(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := service(t, db, `[{"path":"gold","maxGainPerMinute":100}]`), t.Context()
		s.mustSave(t, "main", `{"gold":1}`, 0)
		s.mustSave(t, "main", `{"gold":2}`, 1)
		s.mustSave(t, "main", `{"gold":3}`, 2)
		key := keys.Save(ann, chess, "main")
		if err := db.Client.HSet(ctx, key, "3", `{"gold":9}`).Err(); err != nil {
			t.Fatal(err)
		}
		_, err := s.Load(ctx, ann, chess, "main")
		r := refused(t, err, apierror.SaveTampered)
		intact, ok := r.Members["intact"].([]Revision)
		if !ok || len(intact) != 2 || intact[0].Version != 2 || r.Members["version"] != int64(3) {
			t.Fatalf("members: %+v", r.Members)
		}
		for _, version := range []int64{1, 3} { // neither as the server's copy of a conflict nor to compare with
			_, err = s.Save(ctx, ann, chess, SaveInput{Slot: "main", State: jsontext.Value(`{"gold":10}`), Version: version})
			refused(t, err, apierror.SaveTampered)
		}
		_, err = s.Restore(ctx, ann, chess, RestoreInput{Slot: "main", Version: 3})
		refused(t, err, apierror.SaveTampered)
		history, err := s.History(ctx, ann, chess, "main")
		if err != nil || len(history) != 3 || history[0].SignatureValid || !history[1].SignatureValid {
			t.Fatalf("%+v, %v", history, err)
		}
		if _, err := s.Restore(ctx, ann, chess, RestoreInput{Slot: "main", Version: 2}); err != nil {
			t.Fatal(err)
		}
		s.mustLoad(t, "main", `{"gold":2}`, 4)
		s.mustSave(t, "main", `{"gold":4}`, 4)

		// Whole records of other places and versions, other times, fuller banks.
		mark, state := db.Client.HGet(ctx, key, "5:mark").Val(), db.Client.HGet(ctx, key, "5").Val()
		parts := strings.Split(mark, " ")
		for name, fields := range map[string][]any{
			"another version": {"6:mark", mark, "6", state, "ver", "6"},
			"another time":    {"5:mark", strings.Join([]string{parts[0], "1", parts[2], parts[3], parts[4], parts[5]}, " ")},
			"a full bank":     {"5:mark", strings.Join([]string{parts[0], parts[1], parts[2], parts[3], parts[4], "{}"}, " ")},
			"another key":     {"5:mark", strings.Join([]string{parts[0], parts[1], parts[2], "00000000", parts[4], parts[5]}, " ")},
			"nothing":         {"5:mark", ""},
		} {
			if err := db.Client.HSet(ctx, key, fields...).Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load(ctx, ann, chess, "main"); !errors.Is(err, apierror.SaveTampered) {
				t.Errorf("%s: %v", name, err)
			}
			db.Client.HDel(ctx, key, "6", "6:mark")
			db.Client.HSet(ctx, key, "5:mark", mark, "5", state, "ver", "5")
			s.mustLoad(t, "main", `{"gold":4}`, 5)
		}
		db.Client.HSet(ctx, keys.Save(ann, chess, "copy"), "5:mark", mark, "5", state, "ver", "5")
		_, err = s.Load(ctx, ann, chess, "copy")
		if r := refused(t, err, apierror.SaveTampered); len(r.Members["intact"].([]Revision)) != 0 {
			t.Fatalf("members: %+v", r.Members)
		}
		// With nothing left to trust, the player may begin again.
		s.mustSave(t, "copy", `{"gold":1}`, 5)
		s.mustLoad(t, "copy", `{"gold":1}`, 6)
	})
}

func TestKeysRotate(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		old, young := bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("y"), 32)
		service(t, db, "", old).mustSave(t, "main", `{"a":1}`, 0)
		both := service(t, db, "", young, old)
		both.mustLoad(t, "main", `{"a":1}`, 1)
		_, err := service(t, db, "", young).Load(t.Context(), ann, chess, "main")
		refused(t, err, apierror.SaveTampered)
		both.mustSave(t, "main", `{"a":2}`, 1)
		service(t, db, "", young).mustLoad(t, "main", `{"a":2}`, 2)
		_, err = service(t, db, "", old).Load(t.Context(), ann, chess, "main")
		refused(t, err, apierror.SaveTampered)
	})
	if _, err := New(nil, demands(""), Options{}); err == nil {
		t.Error("a service without a key")
	}
}

func TestASaveThatBreaksARuleChangesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := service(t, db, `[{"path":"hero.gold","maxGainPerMinute":100},{"path":"hero.level","max":9}]`), t.Context()
		s.mustSave(t, "main", `{"hero":{"gold":10,"level":1}}`, 0)
		s.mustSave(t, "main", `{"hero":{"gold":60,"level":1}}`, 1)
		_, err := s.Save(ctx, ann, chess, SaveInput{Slot: "main", State: jsontext.Value(`{"hero":{"gold":1000000,"level":10}}`), Version: 2, MessageID: "1"})
		r := refused(t, err, apierror.SaveRejected)
		if r.Members["rule"] != "maxGainPerMinute" || r.Members["path"] != "hero.gold" || len(r.FieldErrors) != 2 || r.FieldErrors[1].Field != "state.hero.level" {
			t.Fatalf("%+v", r)
		}
		s.mustLoad(t, "main", `{"hero":{"gold":60,"level":1}}`, 2)
		// The bank is spent: no more than 50 and what the moments since then allow.
		_, err = s.Save(ctx, ann, chess, SaveInput{Slot: "main", State: jsontext.Value(`{"hero":{"gold":155,"level":1}}`), Version: 2})
		refused(t, err, apierror.SaveRejected)
		s.mustSave(t, "main", `{"hero":{"gold":110,"level":1}}`, 2)
	})
}

func TestServerOnlyFieldsAreTheServers(t *testing.T) {
	everywhere(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := service(t, db, `[{"path":"hero.gems","serverOnly":true},{"path":"hero.xp","monotonic":"up"}]`), t.Context()
		s.mustSave(t, "main", `{"hero":{"gems":999,"xp":1},"a":1}`, 0)
		s.mustLoad(t, "main", `{"hero":{"xp":1},"a":1}`, 1)
		if _, err := s.Save(ctx, ann, chess, SaveInput{
			Slot: "main", State: jsontext.Value(`{"hero":{"gems":5,"xp":0}}`), Version: 1, ByServer: true,
		}); err != nil {
			t.Fatal(err)
		}
		s.mustSave(t, "main", `{"hero":{"xp":2},"b":1}`, 2)
		s.mustLoad(t, "main", `{"hero":{"xp":2,"gems":5},"b":1}`, 3)
		if _, err := s.Save(ctx, ann, chess, SaveInput{
			Slot: "main", State: jsontext.Value(`{"hero":{"gems":0,"xp":2}}`), Version: 3, ByServer: true,
		}); err != nil {
			t.Fatal(err)
		}
		// What was spent does not come back with the past.
		if _, err := s.Restore(ctx, ann, chess, RestoreInput{Slot: "main", Version: 3}); err != nil {
			t.Fatal(err)
		}
		s.mustLoad(t, "main", `{"hero":{"xp":2,"gems":0},"b":1}`, 5)
	})
}

func TestShadowRulesAreOnlyLogged(t *testing.T) {
	var log bytes.Buffer
	s, err := New(redistest.Single(t), demands(`[{"path":"n","max":5,"mode":"shadow"},{"path":"g","serverOnly":true,"mode":"shadow"}]`),
		Options{SigningKeys: oneKey, Log: slog.New(slog.NewJSONHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.mustSave(t, "main", `{"n":6,"g":1}`, 0)
	s.mustLoad(t, "main", `{"n":6,"g":1}`, 1)
	for _, want := range []string{`"rule":"max"`, `"rule":"serverOnly"`, `"path":"n"`, `"user":7`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, log.String())
		}
	}
}

func TestRulesThatCannotBeReadStopSaves(t *testing.T) {
	s := service(t, redistest.Single(t), `[{"path":"n"}]`)
	_, err := s.Save(t.Context(), ann, chess, SaveInput{Slot: "main", State: jsontext.Value(`{}`)})
	if _, refusal := apierror.As(err); err == nil || refusal {
		t.Fatalf("got %v, want a failure that is no refusal", err)
	}
}

func TestAStoreThatIsGoneIsSaidToBe(t *testing.T) {
	server := redistest.StartFor(t)
	db, err := redisdb.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	s := service(t, db, "")
	s.mustSave(t, "main", `{}`, 0)
	server.Kill()
	_, err = s.Save(t.Context(), ann, chess, SaveInput{Slot: "main", State: jsontext.Value(`{}`), Version: 1})
	refused(t, err, apierror.StoreUnavailable)
	_, err = s.Load(t.Context(), ann, chess, "main")
	refused(t, err, apierror.StoreUnavailable)
	_, err = s.List(t.Context(), ann, chess)
	refused(t, err, apierror.StoreUnavailable)
	_, err = s.History(t.Context(), ann, chess, "main")
	refused(t, err, apierror.StoreUnavailable)
}

// model is what a slot must be, whatever was asked of it.
type model struct {
	states []string // version n is states[n-1]
}

func TestAnySequenceKeepsTheChain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s, ctx := service(t, db, `[{"path":"n","max":50}]`), t.Context()
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
					in := SaveInput{Slot: slot, State: jsontext.Value(state), Version: version, MessageID: "m"}
					saved, err := s.Save(ctx, user, chess, in)
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
						if again, err := s.Save(ctx, user, chess, in); err != nil || again != saved {
							t.Fatalf("again: %+v, %v", again, err)
						}
					}
				case 2:
					if version == 0 {
						continue
					}
					_, err := s.Restore(ctx, user, chess, RestoreInput{Slot: slot, Version: version})
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
				loaded, err := s.Load(ctx, user, chess, slot)
				if newest == 0 {
					if !errors.Is(err, apierror.SlotNotFound) {
						t.Fatalf("load: %v", err)
					}
					continue
				}
				if err != nil || loaded.Version != newest || string(loaded.State) != m.states[newest-1] {
					t.Fatalf("load: %+v, %v; want %d %s", loaded, err, newest, m.states[newest-1])
				}
				history, err := s.History(ctx, user, chess, slot)
				if err != nil || len(history) != min(len(m.states), MaxVersions) {
					t.Fatalf("history: %+v, %v", history, err)
				}
				for i, r := range history {
					if want := newest - int64(i); r.Version != want || !r.SignatureValid || r.Size != len(m.states[want-1]) {
						t.Fatalf("history[%d]: %+v", i, r)
					}
				}
			}
		})
	})
}

func BenchmarkSave(b *testing.B) {
	for _, size := range []int{1 << 10, MaxStateBytes} {
		for name, rules := range map[string]string{"free": "", "ruled": `[{"path":"gold","maxGainPerMinute":100},{"path":"name","maxLength":9}]`} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				s := service(b, redistest.Single(b), rules)
				state := jsontext.Value(`{"gold":1,"name":"ann","data":["` + strings.Repeat(`word","`, size/7-10) + `"]}`)
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
