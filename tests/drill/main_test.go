//go:build linux

package drill

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/tests/balancertest"
	"github.com/parlor-games/parlor/tests/testkit"
)

var (
	all  = flag.Bool("all", false, "make every drill, which takes a minute each; else the short ones")
	logs = flag.Bool("logs", false, "print the logs of all processes when a cell is not as it should be")
)

func TestMain(m *testing.M) { os.Exit(balancertest.Main(m)) }

// pick returns the size of a drill in the short form, and in the long one.
func pick(short, inLong int) int {
	if *all {
		return inLong
	}
	return short
}

// drill is one change or fault, and what it may do to those who use the installation.
type drill struct {
	name    string
	isShort bool // a part of `make test`

	durability string // PARLOR_DURABILITY
	start      func(t *testing.T, d drill) *installation
	program    string // that the nodes are at first, "" for the one of this repository

	isPlanned    bool // nothing fails, nothing is cut
	keepsSockets bool // no socket is moved either
	isFailover   bool // the newest entries may be lost
	mayLose      bool // and acknowledged ones among them

	// change makes the change, or the fault, and returns when an operator's part in it is over.
	change func(in *installation)
}

// TestDrills makes the drills and prints the table.
func TestDrills(t *testing.T) {
	var mu sync.Mutex
	rows := map[string]string{}
	t.Cleanup(func() { // after the parallel ones
		var lines []string
		for _, d := range drills {
			if rows[d.name] != "" {
				lines = append(lines, rows[d.name])
			}
		}
		fmt.Printf("\n%s\n%s\n\n", header(), strings.Join(lines, "\n"))
	})
	for _, d := range drills {
		t.Run(d.name, func(t *testing.T) {
			switch {
			case !*all && !d.isShort:
				t.Skip("not a short one; -all makes it")
			case !*all:
				t.Parallel() // they mostly wait
			}
			var r result
			// The nodes print their logs when this fails, and not for a cell of the table alone.
			if !t.Run("run", func(t *testing.T) {
				r = d.run(t)
				if *logs && len(r.wrong(d)) > 0 {
					t.Fail()
				}
			}) {
				return
			}
			if len(r.failures) > 0 {
				t.Logf("since the change:\n%s", strings.Join(r.failures, "\n"))
			}
			for title, want := range r.wrong(d) {
				t.Errorf("%s: should be %s", title, want)
			}
			mu.Lock()
			defer mu.Unlock()
			rows[d.name] = row(d, r)
			fmt.Printf("%s: %d cells are not as they should be\n", d.name, len(r.wrong(d)))
		})
	}
}

// TestTheProofHasARowOfEachDrill compares the names of the drills with the table in docs/proof.md.
func TestTheProofHasARowOfEachDrill(t *testing.T) {
	text := testkit.Must(os.ReadFile("../../docs/proof.md"))(t)
	_, section, ok := strings.Cut(string(text), "\n## Drills\n")
	if !ok {
		t.Fatal("docs/proof.md has no section Drills")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	_, table, ok := strings.Cut(section, header()+"\n")
	if !ok {
		t.Fatalf("the section Drills has no table with the columns\n%s", header())
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var names []string
	for line := range strings.Lines(table) {
		names = append(names, strings.TrimSpace(strings.Split(line, "|")[1]))
	}
	for i, d := range drills {
		if i >= len(names) || names[i] != d.name {
			t.Fatalf("row %d of the table should be %q; the rows are %q", i+1, d.name, names)
		}
	}
	if len(names) != len(drills) {
		t.Fatalf("the table has rows without a drill: %q", names[len(drills):])
	}
}
