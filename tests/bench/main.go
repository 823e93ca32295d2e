// Command bench measures what Parlor costs, in one run on one machine, as CPU seconds and as ratios
// to a baseline: a gin handler that makes one Redis round trip. It starts and stops its own
// servers.
//
//	go run ./tests/bench            # or: make bench
//	go run ./tests/bench -only B1   # deliveries, of a node and of the floors; others are B2 to B11
//
// What a request costs Redis is measured by tests/cost.
//
// Wall-clock rates depend on the machine and its other load. CPU time of the measured process and
// ratios within a run depend on them much less. Every figure is the median of the passes.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	var o options
	flag.IntVar(&o.passes, "passes", 3, "how often every row is measured; the median is printed")
	flag.IntVar(&o.workers, "workers", 64, "connections that send requests at the same time")
	flag.DurationVar(&o.span, "span", 1500*time.Millisecond, "how long one measurement of a row takes")
	flag.StringVar(&o.appendfsync, "appendfsync", "everysec", "how Redis syncs its append-only file: always, everysec")
	flag.StringVar(&o.durability, "durability", "disk",
		"PARLOR_DURABILITY of the node: memory, disk, or replica, for which the store gets a replica")
	flag.StringVar(&o.nameFilter, "only", "", "measure only rows whose name contains this, or only B1,B2,…")
	flag.DurationVar(&o.warm, "warm", 5*time.Second, "B1 to B11: how long a load runs before it is measured")
	flag.DurationVar(&o.runTime, "run", 15*time.Second, "B1 to B11: how long it is measured")
	shapes := flag.String("shapes", "1x1000,100x10,1000x4", "B1, B2: rooms x sockets of each, also 1x10000")
	systems := flag.String("systems", strings.Join(allSystems, ","), "B1, B2: what is measured")
	underway := flag.String("underway", "16,1", "B1: messages under way in each room")
	flag.Float64Var(&o.rate, "rate", 20_000, "B2: deliveries a second, but of the relay")
	flag.Float64Var(&o.relayRate, "relayrate", 0,
		"B2: deliveries a second of the relay; 0: half of what it makes at most, in B1 if that is measured before")
	flag.BoolVar(&o.pinned, "pin", true, "B1 to B11: the node has a processor of its own, if there are several")
	flag.StringVar(&o.binary, "binary", "", "B1 to B11: measure this build of parlor instead of the sources'")
	flag.StringVar(&o.against, "against", "", "B5: another build of parlor, for the ratio to it")
	flag.StringVar(&o.jsonFile, "json", "", "B1 to B11: write the results into this file")
	flag.StringVar(&o.profileDir, "profiles", "",
		"a folder for CPU profiles of the node, one for each row of the last pass")
	baseline := flag.String("baseline", "", "internal: serve the baseline on this address")
	store := flag.String("store", "", "internal: the store of the baseline")
	floor := flag.String("floor", "", "internal: serve this floor")
	listen := flag.String("listen", "", "internal: the address of the floor")
	flag.Parse()
	switch {
	case *baseline != "":
		serveBaseline(*baseline, *store)
		return
	case *floor != "":
		serveFloor(*floor, *listen, *store)
		return
	}
	if err := run(o, *shapes, *systems, *underway); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o options, shapes, systems, underway string) (err error) {
	o.systems = strings.Split(systems, ",")
	if o.shapes, err = parseShapes(shapes); err != nil {
		return err
	}
	for text := range strings.SplitSeq(underway, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of messages", text)
		}
		o.underway = append(o.underway, n)
	}
	only := strings.Split(o.nameFilter, ",")
	if isBench(only[0]) {
		return runBenches(o, only)
	}
	if err := runRequests(o); err != nil || o.nameFilter != "" {
		return err
	}
	var all []string
	for _, b := range benches {
		all = append(all, b.name)
	}
	return runBenches(o, all)
}

type options struct {
	passes, workers int
	span            time.Duration // of one measurement
	appendfsync     string        // setting of Redis
	durability      string        // of the node
	nameFilter      string        // part of the names of the rows to measure; "" for all
	profileDir      string        // folder for CPU profiles; "" for none

	// Of the benches of sockets.
	warm, runTime time.Duration
	shapes        []shape
	systems       []string // what is measured
	underway      []int    // messages under way in each room
	rate          float64  // deliveries a second
	relayRate     float64  // the same of the relay; 0: half of its most
	pinned        bool     // the node has a processor of its own
	binary        string   // the node; "" for one of the sources
	storeURL      string   // for nodes and floors; "" for that of the store
	against       string   // another node; "" for none
	jsonFile      string   // for the results; "" for none
}

// row is one line of the report: a measured operation and the results of each pass.
type row struct {
	name             string
	opsPerCPUSecond  []float64 // operations per CPU second of the node
	baselineRatios   []float64 // to the baseline of the same pass; empty for the baseline
	echoRatio        []float64 // of cycles to bare requests in fours, of the same pass; empty for the other rows
	opsPerWallSecond []float64 // operations per second of wall clock, everything on this machine
	storeMicros      []float64 // CPU time of the store for each operation
	failedCount      int64
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func report(rows []*row) {
	fmt.Printf("\n%-44s %14s %12s %14s %8s\n", "", "per CPU-second", "µs CPU each", "ratio to base", "failed")
	fmt.Println("NODE CPU")
	for _, r := range rows {
		if len(r.opsPerCPUSecond) == 0 {
			continue
		}
		perCPU, ratio := median(r.opsPerCPUSecond), "-"
		if len(r.baselineRatios) > 0 {
			ratio = fmt.Sprintf("%.2f", median(r.baselineRatios))
		}
		fmt.Printf("  %-42s %14.0f %12.1f %14s %8d\n", r.name, perCPU, 1e6/perCPU, ratio, r.failedCount)
		if len(r.echoRatio) > 0 {
			fmt.Printf("  %-42s %42.2f\n", "  the cycle, to bare gin in fours", median(r.echoRatio))
		}
	}
	fmt.Printf("\n%-44s %14s %12s\n", "STORE", "per second", "µs CPU each")
	for _, r := range rows {
		if len(r.storeMicros) > 0 {
			fmt.Printf("  %-42s %14.0f %12.1f\n", r.name, median(r.opsPerWallSecond), median(r.storeMicros))
		}
	}
}
