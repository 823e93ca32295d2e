package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"golang.org/x/sync/errgroup"
)

// Manifest says what a copy has. It is written last: a folder without one is no copy.
type Manifest struct {
	Format     int       `json:"format"`     // 1
	StartedAt  time.Time `json:"startedAt"`  // UTC
	FinishedAt time.Time `json:"finishedAt"` // UTC
	Masters    []Copied  `json:"masters"`
	Ledgers    []Ledger  `json:"ledgers"` // empty when the user could not read them
}

// Copied is the copy of one master, at one instant between the two times.
type Copied struct {
	Addr          string `json:"addr"`
	Slots         string `json:"slots"` // of a Cluster's master, else ""
	File          string `json:"file"`
	Bytes         int64  `json:"bytes"`
	SHA256        string `json:"sha256"`
	ReplicationID string `json:"replicationId"`
	Offset        int64  `json:"offset"`
}

// Ledger is where the ledger of a game was: the copy has the first number at least and the last at
// most.
type Ledger struct {
	GameID int64 `json:"gameId"`
	First  int64 `json:"first"`
	Last   int64 `json:"last"`
}

const (
	manifestFile = "backup.json"
	format       = 1
	// filePermission keeps copies from other users of the machine: they have every balance.
	filePermission = 0o600
)

// Create copies a store into a folder, which must be empty or not exist. readLedgers returns the
// number of the last entry of each game's ledger; it is called before and after the copy.
func Create(
	ctx context.Context, db *redisdb.DB, dir string, readLedgers func(context.Context) (map[int64]int64, error),
) (Manifest, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Manifest{}, err
	}
	if err := checkEmpty(dir); err != nil {
		return Manifest{}, err
	}
	masters, err := db.Masters(ctx)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{
		Format: format, StartedAt: time.Now().UTC(), Masters: make([]Copied, len(masters)), Ledgers: []Ledger{},
	}
	before, err := readLedgers(ctx)
	if err != nil {
		return Manifest{}, err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for i, master := range masters {
		group.Go(func() error {
			copied, err := copyMaster(groupCtx, master, dir)
			m.Masters[i] = copied
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Manifest{}, err
	}
	after, err := readLedgers(ctx)
	if err != nil {
		return Manifest{}, err
	}
	for gameID := int64(1); gameID <= int64(len(after)); gameID++ {
		m.Ledgers = append(m.Ledgers, Ledger{GameID: gameID, First: before[gameID], Last: after[gameID]})
	}
	m.FinishedAt = time.Now().UTC()
	text, err := wire.Marshal(m)
	if err != nil {
		return Manifest{}, err
	}
	return m, writeFile(filepath.Join(dir, manifestFile), func(out io.Writer) error {
		_, err := out.Write(append(text, '\n'))
		return err
	})
}

func copyMaster(ctx context.Context, master redisdb.Master, dir string) (Copied, error) {
	c := Copied{Addr: master.Addr, Slots: master.Slots, File: "store.rdb"}
	if c.Slots != "" {
		c.File = "slots-" + strings.ReplaceAll(c.Slots, ",", "+") + ".rdb"
	}
	conn, err := master.Dial(ctx)
	if err != nil {
		return c, err
	}
	defer func() { _ = conn.Close() }()
	sum := sha256.New()
	err = writeFile(filepath.Join(dir, c.File), func(out io.Writer) error {
		counted := &counter{out: io.MultiWriter(out, sum)}
		at, err := receive(ctx, conn, counted)
		c.ReplicationID, c.Offset, c.Bytes = at.ReplicationID, at.Offset, counted.bytes
		return err
	})
	if err != nil {
		return c, fmt.Errorf("copy the master %s: %w", master.Addr, err)
	}
	c.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return c, nil
}

// counter counts what is written.
type counter struct {
	out   io.Writer
	bytes int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.out.Write(b)
	c.bytes += int64(n)
	return n, err
}

// writeFile writes a file durably, whole or not at all.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path+".partial", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, filePermission)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(file, 1<<18)
	err = errors.Join(write(out), out.Flush(), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(path+".partial", path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+".partial"))
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// checkEmpty reports whether a folder has nothing in it.
func checkEmpty(dir string) error {
	names, err := os.ReadDir(dir)
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("%s is not empty: it has %s", dir, names[0].Name())
	}
	return err
}

// Read returns the manifest of a copy.
func Read(dir string) (Manifest, error) {
	text, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return Manifest{}, fmt.Errorf("%s is no backup, or not a whole one: %w", dir, err)
	}
	var m Manifest
	if err := wire.Unmarshal(text, &m); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if m.Format != format || len(m.Masters) == 0 {
		return Manifest{}, fmt.Errorf("%s: another version of Parlor wrote it", manifestFile)
	}
	return m, nil
}
