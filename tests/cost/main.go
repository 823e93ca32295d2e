// Command cost counts what the store does for each call of the domains, and fails when a figure is
// above its ceiling. It counts instructions of redis-server under callgrind, which the speed and
// the load of the machine do not change.
//
//	go run ./tests/cost             # or: make cost
//	go run ./tests/cost -update     # writes the ceilings: what it measures and 5 % more
//	go run ./tests/cost -only prize # only rows with such titles, if they need no others; not sizes
//	go run ./tests/cost -time       # or: make bench; times instead, beside a floor script
//
// A method of a domain runs up to its script, which is held back and then sent alone, so that
// nothing else is counted. docs/cost.md has the ceilings and what each price pays for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"regexp"

	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// defaultCalls is how many calls of a row are counted. Redis has Lua collect garbage in each 50th
// call of a script, for some 2,000 kIr: with another number some rows would have one such call
// more.
const defaultCalls = 50

func main() {
	n := flag.Int("calls", defaultCalls, "how many calls of a row are counted")
	update := flag.Bool("update", false, "write the ceilings and docs/cost.md instead of comparing with them")
	only := flag.String("only", "", "a regular expression for the titles of calls: only these are counted")
	timed := flag.Bool("time", false, "measure CPU time under load, sizes and the spread of games over a Cluster")
	flag.Parse()
	redisdb.SetLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	do := func(ctx context.Context) error { return run(ctx, *n, *only, *update) }
	if *timed {
		do = printLoad
	}
	if err := do(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, n int, only string, update bool) error {
	ceilings, err := readCeilings()
	if err != nil {
		return err
	}
	measured, err := measure(ctx, n, only)
	if err != nil {
		return err
	}
	if update {
		updated := measured.ceilings()
		if only != "" { // the others keep theirs
			maps.Copy(ceilings.Calls, updated.Calls)
			updated = ceilings
		}
		return errors.Join(writeCeilings(updated), writeDocument(updated))
	}
	exceeded := compare(os.Stdout, measured, ceilings)
	if len(exceeded) > 0 {
		return fmt.Errorf("%d figures are above their ceilings: %v", len(exceeded), exceeded)
	}
	fmt.Println("\nno figure is above its ceiling")
	return nil
}

// printLoad prints what depends on the machine, and the sizes.
func printLoad(ctx context.Context) error {
	if err := printTimes(ctx); err != nil {
		return err
	}
	if err := printSpread(ctx); err != nil {
		return err
	}
	figures, err := measureSizes(ctx)
	if err != nil {
		return err
	}
	fmt.Println("\nMEMORY OF THE STORE")
	for _, s := range sizes {
		fmt.Printf("  %-58s %10.0f %s\n", s.name, figures[s.name], s.unit)
	}
	return nil
}

// measure measures everything, or the calls whose titles match.
func measure(ctx context.Context, n int, only string) (figures, error) {
	titles, err := regexp.Compile(only)
	if err != nil {
		return figures{}, err
	}
	all := figures{Calls: map[string]callFigures{}}
	if only == "" {
		sizes, err := measureSizes(ctx)
		if err != nil {
			return figures{}, err
		}
		all.Sizes = sizes
	}
	withoutAOF, err := countRows(ctx, false, n, titles)
	if err != nil {
		return figures{}, err
	}
	withAOF, err := countRows(ctx, true, n, titles)
	if err != nil {
		return figures{}, err
	}
	for title, c := range withoutAOF {
		all.Calls[title] = callFigures{
			KIr: c.kIr, KIrWithAOF: withAOF[title].kIr, AOFBytes: withAOF[title].aofBytes,
			Commands: c.commands, BesideCommands: c.besideCommands,
		}
	}
	return all, nil
}
