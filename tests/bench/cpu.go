package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// onNodeCPU returns a command that runs on the first processor alone, if the processes of the bench
// are kept apart: then what the node costs is not mixed with what its load costs.
func onNodeCPU(o options, program string, args ...string) *exec.Cmd {
	if !o.pinned {
		return exec.Command(program, args...)
	}
	return exec.Command("taskset", append([]string{"-c", "0", program}, args...)...)
}

// keepOffNodeCPU moves this process, and what it starts, to the other processors. It reports
// whether there are any.
func keepOffNodeCPU() bool {
	last := runtime.NumCPU() - 1
	if last < 1 {
		return false
	}
	others := fmt.Sprintf("1-%d", last)
	if exec.Command("taskset", "-a", "-c", "-p", others, strconv.Itoa(os.Getpid())).Run() != nil {
		return false
	}
	runtime.GOMAXPROCS(last)
	return true
}

// machineCPU returns how long the processors of the machine were busy since its start.
func machineCPU() time.Duration {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	var busy int64
	for i, field := range strings.Fields(line)[1:] {
		ticks, _ := strconv.ParseInt(field, 10, 64)
		if i < 8 && i != 3 && i != 4 { // without idle and iowait; guest is part of user
			busy += ticks
		}
	}
	return time.Duration(busy) * time.Second / ticksPerSecond
}

// usage is what the processes have used since they began.
type usage struct {
	at                          time.Time
	node, store, bench, machine time.Duration
}

func readUsage(node, store int) (u usage, err error) {
	u.at, u.machine = time.Now(), machineCPU()
	if u.node, err = cpuTime(node); err != nil {
		return u, err
	}
	if store != 0 {
		if u.store, err = cpuTime(store); err != nil {
			return u, err
		}
	}
	u.bench, err = cpuTime(os.Getpid())
	return u, err
}

// since returns what was used after an earlier reading.
func (u usage) since(earlier usage) (node, store, other time.Duration, wall time.Duration) {
	node, store, wall = u.node-earlier.node, u.store-earlier.store, u.at.Sub(earlier.at)
	other = max(0, u.machine-earlier.machine-node-store-(u.bench-earlier.bench))
	return node, store, other, wall
}

// residentKB returns the resident memory of a process in KiB.
func residentKB(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()) / 1024, err
}

// heapUse is what a node has allocated on its heap, and how often garbage was collected, so far.
type heapUse struct{ allocatedBytes, collections float64 }

// readHeapUse reads the metrics of a node; without an address it returns nothing.
func readHeapUse(url string) (u heapUse, err error) {
	if url == "" {
		return u, nil
	}
	response, err := http.Get(url)
	if err != nil {
		return u, err
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		switch name {
		case "go_memstats_alloc_bytes_total":
			u.allocatedBytes, err = strconv.ParseFloat(value, 64)
		case "go_gc_duration_seconds_count":
			u.collections, err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			return u, err
		}
	}
	return u, lines.Err()
}
