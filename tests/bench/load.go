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

// conn is a keep-alive HTTP/1.1 connection that costs the client little CPU, which leaves the
// machine to the server.
type conn struct {
	net.Conn
	reader *bufio.Reader
	buffer []byte // of requests, reused
}

func dial(addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, reader: bufio.NewReaderSize(c, 16<<10)}, nil
}

// request is one HTTP request. Empty fields are left out.
type request struct {
	method, path   string
	accessToken    string // access token
	clientAddress  string // of the client, which the node believes a proxy
	idempotencyKey string
	body           string // JSON
}

// send sends a request and returns status and body.
func (c *conn) send(r request) (int, []byte, error) {
	b := append(c.buffer[:0], r.method...)
	b = append(b, ' ')
	b = append(b, r.path...)
	b = append(b, " HTTP/1.1\r\nHost: bench\r\n"...)
	if r.accessToken != "" {
		b = append(append(append(b, "Authorization: Bearer "...), r.accessToken...), "\r\n"...)
	}
	if r.clientAddress != "" {
		b = append(append(append(b, "X-Forwarded-For: "...), r.clientAddress...), "\r\n"...)
	}
	if r.idempotencyKey != "" {
		b = append(append(append(b, "Idempotency-Key: "...), r.idempotencyKey...), "\r\n"...)
	}
	if r.body != "" {
		b = append(b, "Content-Type: application/json\r\n"...)
	}
	if r.method != "GET" {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), int64(len(r.body)), 10), "\r\n"...)
	}
	b = append(append(b, "\r\n"...), r.body...)
	c.buffer = b
	if _, err := c.Write(b); err != nil {
		return 0, nil, err
	}
	return c.readResponse()
}

func (c *conn) readResponse() (status int, body []byte, err error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	if len(line) < 12 {
		return 0, nil, errors.New("no status line")
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, nil, err
	}
	length := -1
	for {
		if line, err = c.reader.ReadSlice('\n'); err != nil {
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
		return 0, nil, errors.New("a response without Content-Length")
	}
	body = make([]byte, length)
	_, err = io.ReadFull(c.reader, body)
	return status, body, err
}

// measurement is the result of one measurement.
type measurement struct {
	operationCount, failedCount int64
	cpu, wall                   time.Duration // CPU time of the process, elapsed time
	firstFailure                string
}

// measure has workers repeat an operation for a time and returns what it cost the process pid. The
// operation returns errExhausted to end its worker, and other errors for failed operations.
func measure(workers int, span time.Duration, pid int, operation func(worker, turn int) error) (measurement, error) {
	var m measurement
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
				err := operation(w, turn)
				if err == nil {
					done.Add(1)
					continue
				}
				first.CompareAndSwap(nil, err.Error())
				if errors.Is(err, errExhausted) {
					return
				}
				failed.Add(1)
			}
		})
	}
	all.Wait()
	m.wall = time.Since(begin)
	after, err := cpuTime(pid)
	m.cpu, m.operationCount, m.failedCount = after-before, done.Load(), failed.Load()
	m.firstFailure, _ = first.Load().(string)
	return m, err
}

// errExhausted ends a worker that has no more to do.
var errExhausted = errors.New("nothing left to do")

const ticksPerSecond = 100 // USER_HZ of Linux

// cpuTime returns the user and system time that a process has used, from /proc.
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
