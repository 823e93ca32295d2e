package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a keep-alive HTTP/1.1 connection that costs the asking side little, so that the asked side has the machine.
type conn struct {
	c net.Conn
	r *bufio.Reader
	w []byte
}

func dial(addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &conn{c: c, r: bufio.NewReaderSize(c, 16<<10)}, nil
}

// ask sends one request and answers status and body; the body is valid until the next call.
func (c *conn) ask(method, path, bearer, key, body string) (int, []byte, error) {
	b := append(c.w[:0], method...)
	b = append(b, ' ')
	b = append(b, path...)
	b = append(b, " HTTP/1.1\r\nHost: bench\r\n"...)
	if bearer != "" {
		b = append(append(append(b, "Authorization: Bearer "...), bearer...), "\r\n"...)
	}
	if key != "" {
		b = append(append(append(b, "Idempotency-Key: "...), key...), "\r\n"...)
	}
	if body != "" {
		b = append(b, "Content-Type: application/json\r\n"...)
	}
	if method != "GET" {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), int64(len(body)), 10), "\r\n"...)
	}
	b = append(append(b, "\r\n"...), body...)
	c.w = b
	if _, err := c.c.Write(b); err != nil {
		return 0, nil, err
	}
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	if len(line) < 12 {
		return 0, nil, errors.New("no status line")
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, nil, err
	}
	length := -1
	for {
		if line, err = c.r.ReadSlice('\n'); err != nil {
			return 0, nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, nil, err
			}
		}
	}
	if length < 0 {
		return 0, nil, errors.New("an answer without Content-Length")
	}
	answer := make([]byte, length)
	_, err = io.ReadFull(c.r, answer)
	return status, answer, err
}

// measured is what one measurement saw.
type measured struct {
	operations, failed int64
	cpu, wall          time.Duration
	firstFailure       string
}

// measure lets workers repeat an operation for a span and tells what it cost the process pid. The operation answers an error
// when it did not do what it should; io.EOF-like errors end the run.
func measure(workers int, span time.Duration, pid int, operation func(worker, turn int) error) (measured, error) {
	var m measured
	var stop atomic.Bool
	var done, failed atomic.Int64
	var first atomic.Value
	before, err := cpuTime(pid)
	if err != nil {
		return m, err
	}
	begin := time.Now()
	timer := time.AfterFunc(span, func() { stop.Store(true) })
	defer timer.Stop()
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for turn := 0; !stop.Load(); turn++ {
				if err := operation(w, turn); err != nil {
					failed.Add(1)
					first.CompareAndSwap(nil, err.Error())
					if errors.Is(err, errExhausted) {
						failed.Add(-1)
						return
					}
					continue
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	m.wall = time.Since(begin)
	after, err := cpuTime(pid)
	m.cpu, m.operations, m.failed = after-before, done.Load(), failed.Load()
	m.firstFailure, _ = first.Load().(string)
	return m, err
}

// errExhausted ends a worker that has nothing left to do.
var errExhausted = errors.New("nothing left to do")

const ticksPerSecond = 100 // USER_HZ of Linux

// cpuTime is the user and system time that a process has used, from /proc.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticksPerSecond, errors.Join(err1, err2)
}
