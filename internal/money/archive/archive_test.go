package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/tests/testkit"
	"pgregory.net/rapid"
)

const testGame = 7

var testSizes = Sizes{Entries: 4, Lines: 3, Checkpoint: 8}

// eachStorage runs a test on files and on a server that speaks S3.
func eachStorage(t *testing.T, test func(t *testing.T, a *Archive)) {
	t.Helper()
	t.Run("files", func(t *testing.T) { test(t, open(t, "file://"+t.TempDir(), S3Options{})) })
	t.Run("s3", func(t *testing.T) {
		backend := s3mem.New()
		testkit.Check(t, backend.CreateBucket("ledgers"))
		server := httptest.NewServer(gofakes3.New(backend).Server())
		t.Cleanup(server.Close)
		t.Setenv("AWS_ACCESS_KEY_ID", "key")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
		test(t, open(t, "s3://ledgers/some/prefix", S3Options{Endpoint: server.URL, Region: "us-east-1"}))
	})
}

func open(t *testing.T, address string, o S3Options) *Archive {
	t.Helper()
	a := testkit.Must(Open(address, o))(t)
	testkit.Check(t, a.Check(t.Context()))
	return a.WithSizes(testSizes)
}

// entriesOf returns entries that each mint 1 GOLD for a player; the numbers start at first.
func entriesOf(first, count int64) []string {
	var entries []string
	for n := range count {
		entries = append(entries, fmt.Sprintf("1700000000000|nonce|GOLD|test|op|m:-1;w%d:1", (first+n)%3+1))
	}
	return entries
}

// write stores segments up to an entry.
func write(t *testing.T, a *Archive, after Segment, upTo int64) Segment {
	t.Helper()
	for after.Last < upTo {
		next := testkit.Must(a.WriteSegment(t.Context(), testGame, after, entriesOf(after.Last+1, testSizes.Entries)))(t)
		after = next
	}
	return after
}

func TestSegmentsAreAChainThatIsReadInOrder(t *testing.T) {
	eachStorage(t, func(t *testing.T, a *Archive) {
		last := write(t, a, Segment{}, 20)
		var read []string
		previous := ""
		for s, err := range a.Segments(t.Context(), testGame, 6, 18) {
			testkit.Check(t, err)
			if previous != "" && s.Previous != previous {
				t.Errorf("the segment from %d follows another one", s.First)
			}
			previous = s.Sum
			read = append(read, s.Entries...)
		}
		if want := entriesOf(5, 16); !slices.Equal(read, want) || previous != last.Sum {
			t.Errorf("read %q; want %q", read, want)
		}
		if last.Totals["GOLD"]["wallets"] != 20 || last.Totals["GOLD"]["minted"] != 20 {
			t.Errorf("the totals are %v", last.Totals)
		}
		testkit.Fails(a.ReadSegment(t.Context(), testGame, 21))(t, ErrNotFound, "what is not there")
		for _, err := range a.Segments(t.Context(), testGame, 17, 24) {
			if err != nil && !errors.Is(err, ErrNotFound) {
				t.Errorf("a gap: %v", err)
			}
		}
	})
}

func TestTheSameObjectCanBeWrittenTwiceAndAnotherCannot(t *testing.T) {
	eachStorage(t, func(t *testing.T, a *Archive) {
		first := write(t, a, Segment{}, 4)
		again, err := a.WriteSegment(t.Context(), testGame, Segment{}, entriesOf(1, 4))
		if err != nil || again.Sum != first.Sum {
			t.Fatalf("%+v, %v", again, err)
		}
		testkit.Fails(a.WriteSegment(t.Context(), testGame, Segment{}, entriesOf(2, 4)))(t, ErrConflict, "other entries")
		if s, err := a.ReadSegment(t.Context(), testGame, 1); err != nil || s.Sum != first.Sum {
			t.Errorf("the first object has changed: %+v, %v", s, err)
		}
		lines := []string{"a|b", "c", "ü"}
		testkit.Check(t, a.WriteLines(t.Context(), testGame, 12, 4, lines))
		testkit.WantError(t, a.WriteLines(t.Context(), testGame, 12, 4, []string{"a|b", "c", "d"}), ErrConflict,
			"other lines")
		if got, err := a.ReadLines(t.Context(), testGame, 12, 4); err != nil || !slices.Equal(got, lines) {
			t.Errorf("%q, %v", got, err)
		}
		for name, err := range map[string]error{
			"too few":     a.WriteLines(t.Context(), testGame, 12, 4, lines[:2]),
			"misplaced":   a.WriteLines(t.Context(), testGame, 12, 5, lines),
			"a new line":  a.WriteLines(t.Context(), testGame, 13, 1, []string{"a", "b\nc", "d"}),
			"half a list": func() error { _, err := a.WriteSegment(t.Context(), testGame, first, nil); return err }(),
		} {
			if err == nil {
				t.Errorf("%s was written", name)
			}
		}
	})
}

// A node may die while it writes, where a file system or a server is less than whole.
func TestDamagedObjectsAreFoundAndAreWrittenAgain(t *testing.T) {
	eachStorage(t, func(t *testing.T, a *Archive) {
		whole := write(t, a, Segment{}, 8)
		name := nameOf(testGame, kindLedger, 0, 5)
		data := testkit.Must(a.storage.get(t.Context(), name))(t)
		other := testkit.Must(a.storage.get(t.Context(), nameOf(testGame, kindLedger, 0, 1)))(t)
		changed := slices.Clone(data)
		changed[len(changed)/2] ^= 1
		plain := object{kind: kindLedger, gameID: testGame, first: 5, last: 7, texts: entriesOf(5, 4)}
		short := testkit.Must(plain.encode())(t)
		text := testkit.Must(decoder.DecodeAll(data, nil))(t)
		forged := encoder.EncodeAll(bytes.Replace(text, []byte(":1\n"), []byte(":2\n"), 1), nil)
		for why, damage := range map[string][]byte{
			"another entry":  forged,
			"half an object": data[:len(data)/2], "one byte": {0}, "a bit": changed, "another object": other,
			"a wrong count": short, "no sum": encoder.EncodeAll([]byte(magic+"\nkind ledger\n\n"), nil),
		} {
			testkit.Check(t, a.storage.put(t.Context(), name, damage))
			testkit.Fails(a.ReadSegment(t.Context(), testGame, 5))(t, ErrDamaged, "%s", why)
			first := testkit.Must(a.ReadSegment(t.Context(), testGame, 1))(t)
			again, err := a.WriteSegment(t.Context(), testGame, first, entriesOf(5, 4))
			if err != nil || again.Sum != whole.Sum {
				t.Errorf("after %s: %+v, %v", why, again, err)
			}
		}
	})
}

func TestCheckpointsAreWhatTheSegmentsAddUpTo(t *testing.T) {
	eachStorage(t, func(t *testing.T, a *Archive) {
		last := write(t, a, Segment{}, 4)
		for ; last.Last < 32; last = write(t, a, last, last.Last+4) {
			testkit.Check(t, a.MakeCheckpoint(t.Context(), testGame, last.Last))
		}
		numbers, err := a.Checkpoints(t.Context(), testGame)
		if err != nil || !slices.Equal(numbers, []int64{8, 16, 24}) {
			t.Fatalf("checkpoints at %v, %v", numbers, err)
		}
		number, err := a.LastCheckpoint(t.Context(), testGame, 23)
		if err != nil || number != 16 {
			t.Fatalf("the last one before 23: %d, %v", number, err)
		}
		c := testkit.Must(a.ReadCheckpoint(t.Context(), testGame, 24))(t)
		replay := ledger.NewReplay()
		sum, err := a.ReplayFrom(t.Context(), testGame, Checkpoint{Replay: replay}, 24, nil)
		if err != nil || sum != c.Sum || !EqualsCheckpoint(c, replay) || c.Balances != 4 {
			t.Errorf("%+v, %v; want %+v", c, err, replay)
		}
		replay.AddToWallet(1, "GOLD", 1)
		if EqualsCheckpoint(c, replay) {
			t.Error("another balance makes no difference")
		}
	})
}

func TestABrokenChainIsFound(t *testing.T) {
	eachStorage(t, func(t *testing.T, a *Archive) {
		write(t, a, Segment{}, 12)
		o := object{kind: kindLedger, gameID: testGame, first: 5, last: 8, texts: entriesOf(5, 4)}
		for why, change := range map[string]func(){
			"another segment before": func() { o.previous, o.totals = "other", []string{"GOLD minted 8", "GOLD wallets 8"} },
			"other totals": func() {
				first, _ := a.ReadSegment(t.Context(), testGame, 1)
				o.previous, o.totals = first.Sum, []string{"GOLD minted 8", "GOLD wallets 9"}
			},
		} {
			change()
			data, err := o.encode()
			if err == nil {
				err = a.storage.put(t.Context(), o.name(), data)
			}
			testkit.Check(t, err)
			testkit.Fails(a.ReplayFrom(t.Context(), testGame, Checkpoint{Replay: ledger.NewReplay()}, 8, nil))(
				t, ErrDamaged, "%s", why)
		}
	})
}

func TestRewindSetsAsideWhatTheStoreHasForgotten(t *testing.T) {
	eachStorage(t, func(t *testing.T, a *Archive) {
		last := write(t, a, Segment{}, 16)
		for _, number := range []int64{8, last.Last} {
			testkit.Check(t, a.MakeCheckpoint(t.Context(), testGame, number))
		}
		for first := int64(1); first < 10; first += 3 {
			testkit.Check(t, a.WriteLines(t.Context(), testGame, 12, first, []string{"1", "2", "3"}))
		}
		bases := func([]int64) (map[int64]int64, error) { return map[int64]int64{12: 3}, nil }
		for _, want := range []Rewound{{Segments: 2, Checkpoints: 1, Lines: 2}, {}} {
			if got, err := a.Rewind(t.Context(), testGame, 8, bases, "test"); err != nil || got != want {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		}
		if numbers, err := a.Checkpoints(t.Context(), testGame); err != nil || !slices.Equal(numbers, []int64{8}) {
			t.Errorf("checkpoints at %v, %v", numbers, err)
		}
		eighth := testkit.Must(a.ReadSegment(t.Context(), testGame, 5))(t)
		testkit.Report(t, testkit.ErrorOf(a.WriteSegment(t.Context(), testGame, eighth, entriesOf(100, 4))),
			"another history")
		testkit.Report(t, a.WriteLines(t.Context(), testGame, 12, 4, []string{"4", "5", "7"}), "other lines")
		testkit.Report(t, testkit.ErrorOf(a.storage.get(t.Context(), "superseded/test/"+nameOf(testGame, kindLedger, 0, 9))),
			"the lost history")
	})
}

func TestBalancesSurviveACheckpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := ledger.NewReplay()
		rooms := []string{"a", "b|c", ""}
		for range rapid.IntRange(0, 30).Draw(t, "entries") {
			user := rapid.Int64Range(1, 3).Draw(t, "user")
			units := rapid.Int64Range(1, 1<<53-1).Draw(t, "units")
			room := rapid.SampledFrom(rooms).Draw(t, "room")
			postings := rapid.SampledFrom([]string{
				"m:-%[2]d;w%[1]d:%[2]d", "w%[1]d:-%[2]d;e:%[2]d", "e:-%[2]d;w%[1]d:%[2]d", "w%[1]d:-%[2]d;h:%[2]d",
				"e:-%[2]d;h:%[2]d", "p:%[2]d;h:-%[2]d",
			}).Draw(t, "postings")
			text := "1|n|GOLD|why|" + strings.ReplaceAll(room, "|", "%7C") + "|" + fmt.Sprintf(postings, user, units)
			r.Apply(ledger.Decode(r.Number+1, text))
		}
		got, err := decodeBalances(r.Number, encodeBalances(r))
		if err != nil || got.Number != r.Number || !slices.Equal(encodeBalances(got), encodeBalances(r)) {
			t.Fatalf("%v; %q, want %q", err, encodeBalances(got), encodeBalances(r))
		}
	})
	for _, line := range []string{"", "w7|GOLD", "w|GOLD|x", "wx|GOLD|1", "e|GOLD|1", "h|GOLD|1|room", "s7|GOLD|1"} {
		testkit.Fails(decodeBalances(1, []string{line}))(t, ErrDamaged, "%q", line)
	}
}

func TestAFolderThatIsNotMountedIsNoEmptyArchive(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	a := testkit.Must(Open("file://"+dir, S3Options{}))(t)
	a = a.WithSizes(testSizes)
	if err := a.Check(t.Context()); err == nil {
		t.Error("the check finds nothing")
	}
	if _, err := a.WriteSegment(t.Context(), testGame, Segment{}, entriesOf(1, 4)); err == nil ||
		errors.Is(err, ErrNotFound) {
		t.Errorf("a segment was written: %v", err)
	}
	if _, err := a.ReadSegment(t.Context(), testGame, 1); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("a segment is missing: %v", err)
	}
	if _, err := a.Checkpoints(t.Context(), testGame); err == nil {
		t.Error("the list of checkpoints is empty")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder was made")
	}
}

func TestAddresses(t *testing.T) {
	for address, valid := range map[string]bool{
		"file:///var/lib/parlor": true, "s3://bucket": true, "s3://bucket/a/b": true,
		"": false, "/var/lib": false, "file://var/lib": false, "file:///a?b": false, "s3:///a": false, "s3://u:p@b/a": false,
		"http://a/b": false, "file:relative": false,
	} {
		if _, err := Open(address, S3Options{}); (err == nil) != valid {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, endpoint := range []string{"localhost:9000", "ftp://a", "https://", "https://a/b"} {
		if _, err := Open("s3://bucket", S3Options{Endpoint: endpoint}); err == nil {
			t.Errorf("the endpoint %q is accepted", endpoint)
		}
	}
}

// A server of S3 that does not answer is an error, and no missing object.
func TestAServerThatIsDownIsNoEmptyArchive(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	a := testkit.Must(Open("s3://ledgers", S3Options{Endpoint: server.URL, Region: "us-east-1"}))(t)
	ctx, cancel := context.WithTimeout(t.Context(), s3RequestTimeout)
	defer cancel()
	if err := a.Check(ctx); err == nil {
		t.Error("the check finds nothing")
	}
	if _, err := a.ReadSegment(ctx, testGame, 1); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
}
