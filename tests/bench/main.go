// Command bench measures what Parlor costs, in one run on one machine, as CPU seconds and as ratios to a bare
// gin handler that makes one Redis round trip. It starts its own servers and ends them.
//
//	go run ./tests/bench            # or: make bench
//
// Wall-clock rates depend on the machine and on what else it does; CPU time of the measured process and ratios
// within a run do so much less. Every figure is the median of the passes.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	var o options
	flag.IntVar(&o.passes, "passes", 3, "how often every row is measured; the median is shown")
	flag.IntVar(&o.workers, "workers", 64, "connections that ask at the same time")
	flag.DurationVar(&o.span, "span", 2*time.Second, "how long one measurement of a row takes")
	flag.StringVar(&o.only, "only", "", "measure only rows whose name contains this")
	flag.StringVar(&o.profiles, "profiles", "", "a folder for CPU profiles of the node, one for each row of the last pass")
	bare := flag.String("bare", "", "internal: serve the bare handler on this address")
	store := flag.String("store", "", "internal: the store of the bare handler")
	flag.Parse()
	if *bare != "" {
		serveBare(*bare, *store)
		return
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	passes, workers int
	span            time.Duration
	only            string
	profiles        string
}

// row is one line of the report: the name of a measured operation and what each pass gave.
type row struct {
	name    string
	perCPU  []float64 // operations per CPU second of the node, or of Redis
	ratio   []float64 // to the bare handler of the same pass; empty where there is none
	perWall []float64 // operations per second of wall clock, everything on this machine
	of      string    // whose CPU: "node" or "redis"
	failed  int64
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func report(rows []*row) {
	fmt.Printf("\n%-44s %14s %12s %14s %8s\n", "", "per CPU-second", "µs CPU each", "ratio to bare", "failed")
	of := ""
	for _, r := range rows {
		if len(r.perCPU) == 0 {
			continue
		}
		if r.of != of {
			of = r.of
			fmt.Printf("%s\n", strings.ToUpper(of)+" CPU")
		}
		perCPU, ratio := median(r.perCPU), "-"
		if len(r.ratio) > 0 {
			ratio = fmt.Sprintf("%.2f", median(r.ratio))
		}
		fmt.Printf("  %-42s %14.0f %12.1f %14s %8d\n", r.name, perCPU, 1e6/perCPU, ratio, r.failed)
	}
}
