package backup

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc64"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Position is where in its history a master was copied.
type Position struct {
	ReplicationID string
	Offset        int64
}

// silenceTimeout is how long a master may send nothing. It sends empty lines while it prepares the
// copy.
const silenceTimeout = 2 * time.Minute

// receive copies all data of a master, as a replica does, over its own connection, and writes it as
// an RDB file. It returns an error if the copy is incomplete. When ctx ends, it closes the
// connection: each read sets a deadline of its own, so one that was set by the end of ctx would be
// lost between two reads.
func receive(ctx context.Context, conn net.Conn, out io.Writer) (_ Position, err error) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() {
		if err != nil {
			err = errors.Join(err, ctx.Err())
		}
	}()
	r := replica{conn: conn, in: bufio.NewReaderSize(conn, 1<<16)}
	// With eof the master sends the copy as it makes it, without a file of its own. With rdb-only it
	// knows that nothing shall follow.
	for _, option := range [][]string{{"capa", "eof"}, {"rdb-only", "1"}} {
		if _, err := r.call(append([]string{"REPLCONF"}, option...)...); err != nil {
			return Position{}, err
		}
	}
	reply, err := r.call("PSYNC", "?", "-1")
	if err != nil {
		return Position{}, err
	}
	parts := strings.Fields(reply)
	if len(parts) != 3 || parts[0] != "FULLRESYNC" {
		return Position{}, fmt.Errorf("the master replies to PSYNC with %q", reply)
	}
	at := Position{ReplicationID: parts[1]}
	if at.Offset, err = strconv.ParseInt(parts[2], 10, 64); err != nil {
		return Position{}, err
	}
	checked := newChecker(out)
	if err := r.copyTo(checked); err != nil {
		return Position{}, err
	}
	return at, checked.end()
}

// replica is a connection to a master.
type replica struct {
	conn net.Conn
	in   *bufio.Reader
}

// call sends a command and returns its reply, which is one line.
func (r replica) call(args ...string) (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := r.conn.Write(b.Bytes()); err != nil {
		return "", err
	}
	line, err := r.line()
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", args[0], err)
	case strings.HasPrefix(line, "-"):
		return "", fmt.Errorf("%s: %s", args[0], line[1:])
	}
	return strings.TrimPrefix(line, "+"), nil
}

// line returns the next line that is not empty.
func (r replica) line() (string, error) {
	for {
		if err := r.conn.SetReadDeadline(time.Now().Add(silenceTimeout)); err != nil {
			return "", err
		}
		line, err := r.in.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line != "" || err != nil {
			return line, err
		}
	}
}

// copyTo copies what the master sends: a known number of bytes, or all up to a mark.
func (r replica) copyTo(out io.Writer) error {
	header, err := r.line()
	if err != nil {
		return err
	}
	length, ok := strings.CutPrefix(header, "$")
	if !ok {
		return fmt.Errorf("the master sends %q instead of a copy", header)
	}
	if mark, streamed := strings.CutPrefix(length, "EOF:"); streamed {
		return r.copyUpTo([]byte(mark), out)
	}
	left, err := strconv.ParseInt(length, 10, 64)
	if err != nil {
		return err
	}
	buffer := make([]byte, 1<<16)
	for left > 0 {
		n, err := r.read(buffer[:min(left, int64(len(buffer)))])
		if _, writeErr := out.Write(buffer[:n]); writeErr != nil {
			return writeErr
		}
		if left -= int64(n); err != nil {
			return err
		}
	}
	return nil
}

// copyUpTo copies what the master sends until the mark, which it leaves out. The master announced
// the mark before the copy. It sends nothing after it, because this replica acknowledges nothing.
func (r replica) copyUpTo(mark []byte, out io.Writer) error {
	buffer := make([]byte, 0, 1<<17)
	for !bytes.HasSuffix(buffer, mark) {
		if written := len(buffer) - len(mark); written > 1<<16 { // the rest may be a part of the mark
			if _, err := out.Write(buffer[:written]); err != nil {
				return err
			}
			buffer = append(buffer[:0], buffer[written:]...)
		}
		n, err := r.read(buffer[len(buffer):min(len(buffer)+1<<15, cap(buffer))])
		buffer = buffer[:len(buffer)+n]
		if err != nil && !bytes.HasSuffix(buffer, mark) {
			return fmt.Errorf("the copy ends too early: %w", err)
		}
	}
	_, err := out.Write(buffer[:len(buffer)-len(mark)])
	return err
}

func (r replica) read(buffer []byte) (int, error) {
	if err := r.conn.SetReadDeadline(time.Now().Add(silenceTimeout)); err != nil {
		return 0, err
	}
	return r.in.Read(buffer)
}

// checker passes an RDB file on and checks that it starts and ends as one, with its CRC-64.
type checker struct {
	out   io.Writer
	start []byte // the first bytes
	tail  []byte // the last bytes, which are not in the sum yet
	sum   hash.Hash64
	size  int64
}

// The file ends with an opcode and the CRC-64 of all before the sum, in the variant of Redis.
const (
	rdbMagic   = "REDIS"
	rdbSumSize = 8
)

var rdbSums = crc64.MakeTable(0x95AC9329AC4BC9B5)

func newChecker(out io.Writer) *checker { return &checker{out: out, sum: newRDBSum()} }

func (c *checker) Write(b []byte) (int, error) {
	if missing := len(rdbMagic) - len(c.start); missing > 0 {
		c.start = append(c.start, b[:min(missing, len(b))]...)
	}
	c.size += int64(len(b))
	c.tail = append(c.tail, b...)
	if summed := len(c.tail) - rdbSumSize; summed > 0 {
		_, _ = c.sum.Write(c.tail[:summed])
		c.tail = append(c.tail[:0], c.tail[summed:]...)
	}
	return c.out.Write(b)
}

// end reports whether the file was whole.
func (c *checker) end() error {
	if string(c.start) != rdbMagic || len(c.tail) < rdbSumSize {
		return errors.New("the copy is no RDB file")
	}
	var stored uint64
	for i, b := range c.tail {
		stored |= uint64(b) << (8 * i)
	}
	if stored != 0 && stored != c.sum.Sum64() { // 0: the server makes no sums
		return errors.New("the copy is damaged: its CRC-64 is another one")
	}
	return nil
}

// rdbSum is the CRC-64 of Redis: it starts with 0 and inverts nothing.
type rdbSum struct{ inverted uint64 }

func newRDBSum() hash.Hash64 { return &rdbSum{^uint64(0)} }

func (s *rdbSum) Write(b []byte) (int, error) {
	s.inverted = crc64.Update(s.inverted, rdbSums, b)
	return len(b), nil
}
func (s *rdbSum) Sum64() uint64       { return ^s.inverted }
func (s *rdbSum) Sum(b []byte) []byte { return fmt.Appendf(b, "%x", s.Sum64()) }
func (s *rdbSum) Reset()              { s.inverted = ^uint64(0) }
func (s *rdbSum) Size() int           { return rdbSumSize }
func (s *rdbSum) BlockSize() int      { return 1 }
