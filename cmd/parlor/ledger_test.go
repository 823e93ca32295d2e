//go:build linux

package main

import (
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a terminal: what is written to one is read from the other.
func openTerminal(t *testing.T) (program, screen *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	fd := int(screen.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
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

	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	show, end := newProgress(write, 400, "game 7")
	show(100)
	end()
	_ = write.Close()
	if rest, _ := io.ReadAll(read); len(rest) > 0 {
		t.Errorf("a pipe gets %q", rest)
	}
}
