package main

import (
	"context"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func TestTheTableHasExactlyWhatIsMeasured(t *testing.T) {
	ceilings := testkit.Must(readCeilings())(t)
	wantCalls, wantSizes := titles()
	calls, sizes := ceilings.titles()
	if !slices.Equal(calls, wantCalls) {
		t.Errorf("ceilings.json has the calls %q, measured are %q", calls, wantCalls)
	}
	if !slices.Equal(sizes, wantSizes) {
		t.Errorf("ceilings.json has the sizes %q, measured are %q", sizes, wantSizes)
	}
	for title, c := range ceilings.Calls {
		if c.KIr <= 0 || c.KIrWithAOF <= 0 {
			t.Errorf("%s has no ceiling: %+v", title, c)
		}
	}
	for title, n := range ceilings.Sizes {
		if n <= 0 {
			t.Errorf("%s has no ceiling", title)
		}
	}
}

func TestTheDocumentHasTheCeilings(t *testing.T) {
	text := testkit.Must(os.ReadFile("../../" + documentFile))(t)
	_, inside, _, err := splitDocument(string(text))
	testkit.Check(t, err)
	ceilings := testkit.Must(readCeilings())(t)
	if inside != "\n"+table(ceilings)+"\n" {
		t.Errorf("%s does not have the ceilings of ceilings.json", documentFile)
	}
}

func TestEveryFigureAboveItsCeilingIsReported(t *testing.T) {
	ceilings := testkit.Must(readCeilings())(t)
	if exceeded := compare(io.Discard, ceilings, ceilings); len(exceeded) > 0 {
		t.Errorf("figures at their ceilings are reported: %v", exceeded)
	}
	rows := callRows()
	title := rows[0].title()
	for what, change := range map[string]func(*callFigures){
		"instructions":          func(c *callFigures) { c.KIr++ },
		"instructions with AOF": func(c *callFigures) { c.KIrWithAOF++ },
		"AOF bytes":             func(c *callFigures) { c.AOFBytes++ },
		"commands":              func(c *callFigures) { c.Commands++ },
		"commands beside":       func(c *callFigures) { c.BesideCommands += " get" },
	} {
		measured, _ := readCeilings()
		c := measured.Calls[title]
		change(&c)
		measured.Calls[title] = c
		if exceeded := compare(io.Discard, measured, ceilings); len(exceeded) != 1 {
			t.Errorf("%s above the ceiling: %d reports, want 1", what, len(exceeded))
		}
	}
	measured, _ := readCeilings()
	measured.Sizes[sizes[0].name]++
	if exceeded := compare(io.Discard, measured, ceilings); len(exceeded) != 1 {
		t.Errorf("a size above the ceiling: %d reports, want 1", len(exceeded))
	}
}

// Keys that are gone leave a table behind which Redis makes smaller at another time, or never.
func TestASizeDoesNotDependOnTheTableOfKeys(t *testing.T) {
	const measured, gone = 1_700, 9_000 // a tenth of 16,384 slots is in use, so Redis keeps them
	measure := func(others int) (perKey float64) {
		ctx := context.Background()
		s := &sizing{client: redistest.Dial(t, redistest.StartForTest(t, sizeArgs...))}
		set := func(prefix string, n int) {
			for i := range n {
				testkit.Check(t, s.client.Set(ctx, prefix+strconv.Itoa(1_000_000+i), "value", time.Hour).Err())
			}
		}
		used := func() float64 {
			return testkit.Must(s.usedMemory(ctx))(t)
		}
		keepOnly := func() {
			testkit.Check(t, s.deleteOthers(ctx, func(key string) bool { return key[:4] == "kept" }))
		}
		set("gone", 1)
		keepOnly()
		before := used()
		set("gone", others)
		set("kept", measured)
		keepOnly()
		return (used() - before) / measured
	}
	alone, after := measure(0), measure(gone)
	if math.Abs(alone-after) > 1 || alone < 100 || alone > 200 {
		t.Errorf("a key takes %.1f bytes by itself and %.1f beside %d keys that are gone", alone, after, gone)
	}
}
