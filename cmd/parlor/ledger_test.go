//go:build linux

package main

import (
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/tests/testkit"
	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a terminal: what is written to one is read from the other.
func openTerminal(t *testing.T) (program, screen *os.File) {
	t.Helper()
	screen = testkit.Must(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))(t)
	t.Cleanup(func() { _ = screen.Close() })
	fd := int(screen.Fd())
	testkit.Check(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number := testkit.Must(unix.IoctlGetInt(fd, unix.TIOCGPTN))(t)
	program = testkit.Must(os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = program.Close() })
	return program, screen
}

func TestProgressIsABarOnATerminalAndNothingElsewhere(t *testing.T) {
	program, screen := openTerminal(t)
	show, _ := newProgress(program, 400, "game 7")
	show(100)
	text := make([]byte, 4096)
	for shown := ""; !strings.Contains(shown, "100/400"); {
		n, err := screen.Read(text)
		if err != nil {
			t.Fatalf("%v after %q", err, shown)
		}
		if shown += string(text[:n]); strings.Contains(shown, "100/400") && !strings.Contains(shown, "game 7") {
			t.Errorf("the bar is %q", shown)
		}
	}

	read, write := testkit.Must2(os.Pipe())(t)
	show, end := newProgress(write, 400, "game 7")
	show(100)
	end()
	_ = write.Close()
	if rest, _ := io.ReadAll(read); len(rest) > 0 {
		t.Errorf("a pipe gets %q", rest)
	}
}
