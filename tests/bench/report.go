package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
)

// result is one line of B1 to B11. Which members it has depends on the bench.
type result struct {
	Bench          string  `json:"bench"`
	System         string  `json:"system"`
	Shape          string  `json:"shape,omitzero"`
	Underway       int     `json:"underway,omitzero"` // messages under way in each room
	PerCPUSecond   float64 `json:"perCPUSecond,omitzero"`
	PerSecond      float64 `json:"perSecond,omitzero"`
	Ratio          float64 `json:"ratio,omitzero"` // to gorilla of the same run, or what the title says
	EventsPerFrame float64 `json:"eventsPerFrame,omitzero"`
	NodeCores      float64 `json:"nodeCores,omitzero"`
	P50            float64 `json:"p50Ms,omitzero"`
	P99            float64 `json:"p99Ms,omitzero"`
	StoreMicros    float64 `json:"storeMicros,omitzero"`    // CPU of the store for each delivery
	OtherCores     float64 `json:"otherCores"`              // busy with what is not of the bench
	Lost           int64   `json:"lost"`                    // deliveries
	SlopeKB        float64 `json:"slopeKB,omitzero"`        // resident memory of one more player
	AllocatedBytes float64 `json:"allocatedBytes,omitzero"` // of the node's heap, for each message
	Collections    int     `json:"collections,omitzero"`    // of the node's garbage, in the measured time
	Text           string  `json:"text,omitzero"`           // what has no column
}

// realtimeBench measures what sockets cost: B1 to B11.
type realtimeBench struct {
	*servers
	options options
	results []result
}

func (r *realtimeBench) head(name, title string) {
	fmt.Printf("\n%s: %s\n%-12s %-10s %3s %12s %8s %12s %7s %8s %8s %7s %6s %7s\n", name, title,
		"", "shape", "w", "per CPU-s", "ratio", "per second", "/frame", "p50 ms", "p99 ms", "store", "other", "lost")
}

// add prints a result and keeps it.
func (r *realtimeBench) add(m result) {
	for _, v := range []*float64{&m.Ratio, &m.PerCPUSecond, &m.EventsPerFrame, &m.StoreMicros, &m.P50, &m.P99} {
		if math.IsNaN(*v) || math.IsInf(*v, 0) { // nothing arrived; JSON has no such number
			*v = 0
		}
	}
	r.results = append(r.results, m)
	column := func(v float64, format string) string {
		if v == 0 {
			return "-"
		}
		return fmt.Sprintf(format, v)
	}
	underway := "-"
	if m.Underway > 0 {
		underway = strconv.Itoa(m.Underway)
	}
	fmt.Printf("%-12s %-10s %3s %12s %8s %12s %7s %8s %8s %7s %6.2f %7d %s\n", m.System, m.Shape, underway,
		writeNumber(m.PerCPUSecond), column(m.Ratio, "%.2f"), writeNumber(m.PerSecond), column(m.EventsPerFrame, "%.2f"),
		column(m.P50, "%.2f"), column(m.P99, "%.2f"), column(m.StoreMicros, "%.2f"), m.OtherCores, m.Lost, m.Text)
}

// benches are the benches of sockets by name. B3 and B4 are measured on the same sockets, once.
var benches = []struct {
	name string
	run  func(*realtimeBench) error
}{
	{"B1", (*realtimeBench).measureDeliveries},
	{"B2", (*realtimeBench).measureLatency},
	{"B3", (*realtimeBench).measureIdle},
	{"B4", (*realtimeBench).measureIdle},
	{"B5", (*realtimeBench).measureStorm},
	{"B6", (*realtimeBench).measureCuts},
	{"B7", (*realtimeBench).measureFork},
	{"B8", (*realtimeBench).measureSlowReaders},
	{"B9", (*realtimeBench).measureScript},
	{"B10", (*realtimeBench).measureRestart},
	{"B11", (*realtimeBench).measureCalls},
}

// isBench reports whether a name is that of one of the benches.
func isBench(name string) bool {
	for _, b := range benches {
		if b.name == name {
			return true
		}
	}
	return false
}

// runBenches runs the benches of sockets that are named.
func runBenches(o options, names []string) error {
	load, _ := os.ReadFile("/proc/loadavg")
	o.pinned = o.pinned && keepOffNodeCPU()
	s, err := startStore(o)
	defer s.stop()
	if err != nil {
		return err
	}
	fmt.Printf("\nsockets: %v to warm up, %v measured, %d processors, node alone on one: %t, load before: %s",
		o.warm, o.runTime, runtime.NumCPU(), o.pinned, load)
	r := &realtimeBench{servers: s, options: o}
	for _, b := range benches {
		isMeasured := slices.ContainsFunc(r.results, func(m result) bool { return m.Bench == b.name })
		if err == nil && slices.Contains(names, b.name) && !isMeasured {
			err = b.run(r)
		}
	}
	if o.jsonFile != "" {
		if writeErr := r.writeJSON(strings.TrimSpace(string(load))); err == nil {
			err = writeErr
		}
	}
	return err
}

func (r *realtimeBench) writeJSON(load string) error {
	text, err := wire.Marshal(map[string]any{
		"at": time.Now().UTC(), "go": runtime.Version(), "processors": runtime.NumCPU(), "loadBefore": load,
		"warmSeconds": r.options.warm.Seconds(), "runSeconds": r.options.runTime.Seconds(), "results": r.results,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(r.options.jsonFile, append(text, '\n'), 0o644)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// writeNumber returns a number as the table shows it: 1,234,567.
func writeNumber(n float64) string {
	if n == 0 {
		return "-"
	}
	text := strconv.FormatFloat(n, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
