package backup

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The files of an append-only file with a base, as a server of version 7 or later loads them. A
// dump.rdb would be ignored by a server with "appendonly yes", which would start empty and then
// write its empty state over everything.
const (
	aofFolder    = "appendonlydir"
	aofBase      = "appendonly.aof.1.base.rdb"
	aofIncrement = "appendonly.aof.1.incr.aof"
	aofManifest  = "appendonly.aof.manifest"
	aofContents  = "file " + aofBase + " seq 1 type b\nfile " + aofIncrement + " seq 1 type i\n"
)

// Restore writes the copy of one master into the data folder of a server that is not running. The
// folder must have no data. slots names the master of a Cluster, as in the manifest; "" is the only
// one. It checks the copy first.
func Restore(dir, slots, dataDir string) error {
	m, err := Read(dir)
	if err != nil {
		return err
	}
	var copied *Copied
	for i, c := range m.Masters {
		if c.Slots == slots || slots == "" && len(m.Masters) == 1 {
			copied = &m.Masters[i]
		}
	}
	if copied == nil {
		return fmt.Errorf("the backup has %d masters and none with the slots %q: name one by its slots",
			len(m.Masters), slots)
	}
	from := filepath.Join(dir, filepath.Base(copied.File))
	if err := check(from, *copied); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dataDir, "dump.rdb")); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s has a dump.rdb: move it away first", dataDir))
	}
	to := filepath.Join(dataDir, aofFolder)
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s has data in %s: move it away first", dataDir, aofFolder))
	}
	owner, err := os.Stat(dataDir)
	if err != nil {
		return err
	}
	// The folder gets its name last, so that a server never loads half a copy.
	partial := to + ".partial"
	if err := errors.Join(os.RemoveAll(partial), os.Mkdir(partial, 0o700)); err != nil {
		return err
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	for name, content := range map[string]io.Reader{
		aofBase: source, aofIncrement: strings.NewReader(""), aofManifest: strings.NewReader(aofContents),
	} {
		err := writeFile(filepath.Join(partial, name), func(out io.Writer) error {
			_, err := io.Copy(out, content)
			return err
		})
		if err != nil {
			return err
		}
		if err := giveTo(filepath.Join(partial, name), owner); err != nil {
			return err
		}
	}
	return errors.Join(giveTo(partial, owner), os.Rename(partial, to))
}

// check compares a file with its manifest.
func check(path string, c Copied) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	whole := newChecker(sum)
	if _, err := io.Copy(whole, bufio.NewReaderSize(file, 1<<18)); err != nil {
		return err
	}
	if whole.size != c.Bytes || hex.EncodeToString(sum.Sum(nil)) != c.SHA256 {
		return fmt.Errorf("%s is not as it was written", path)
	}
	return whole.end()
}
