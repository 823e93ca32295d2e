package backup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/backup"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func noLedgers(context.Context) (map[int64]int64, error) { return nil, nil }

const keyCount = 3000

func fill(t *testing.T, db *redisdb.DB) {
	t.Helper()
	_, err := db.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range keyCount {
			p.Set(t.Context(), fmt.Sprintf("key:%d", i), strings.Repeat("x", 100+i), 0)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// countRestored starts a server on each copy and counts the keys.
func countRestored(t *testing.T, dir string, m backup.Manifest) (keys int64) {
	t.Helper()
	for _, c := range m.Masters {
		server := redistest.StartFor(t, "--appendonly", "yes")
		server.Kill()
		if err := os.RemoveAll(filepath.Join(server.Dir, "appendonlydir")); err != nil {
			t.Fatal(err)
		}
		if err := backup.Restore(dir, c.Slots, server.Dir); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		client := redistest.Dial(t, server)
		n, err := client.DBSize(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		keys += n
		for i := range keyCount {
			value, err := client.Get(t.Context(), fmt.Sprintf("key:%d", i)).Result()
			if err == nil && value != strings.Repeat("x", 100+i) {
				t.Fatalf("key:%d is %q", i, value)
			}
		}
		if err := backup.Restore(dir, c.Slots, server.Dir); err == nil {
			t.Error("it was restored over data")
		}
	}
	return keys
}

func TestACopyIsWholeAndIsLoadedByAServerWithAnAppendOnlyFile(t *testing.T) {
	redistest.EachStoreURL(t, func(t *testing.T, _ string, db *redisdb.DB) {
		fill(t, db)
		dir := filepath.Join(t.TempDir(), "copy")
		m, err := backup.Create(t.Context(), db, dir, noLedgers)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := backup.Read(dir); err != nil || len(again.Masters) != len(m.Masters) || m.Masters[0].Bytes < 10_000 {
			t.Errorf("%+v, %v", again, err)
		}
		if n := countRestored(t, dir, m); n != keyCount {
			t.Errorf("%d keys; want %d", n, keyCount)
		}
		if _, err := backup.Create(t.Context(), db, dir, noLedgers); err == nil {
			t.Error("a backup was written over another one")
		}
	})
}

// A server may send the copy in one piece from its disk.
func TestACopyFromTheDiskOfTheServer(t *testing.T) {
	server := redistest.StartFor(t, "--repl-diskless-sync", "no", "--requirepass", "secret")
	db, err := redisdb.Open("redis://:secret@" + server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	fill(t, db)
	dir := t.TempDir()
	m, err := backup.Create(t.Context(), db, dir, noLedgers)
	if err != nil {
		t.Fatal(err)
	}
	if n := countRestored(t, dir, m); n != keyCount {
		t.Errorf("%d keys; want %d", n, keyCount)
	}
}

func TestTheBackupUserCopiesAndReadsNothing(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/redis/users.acl")
	if err != nil {
		t.Fatal(err)
	}
	server := redistest.StartFor(t)
	admin := redistest.Dial(t, server)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "user parlor-backup ") {
			continue
		}
		line = strings.Replace(line, "#SHA256_PARLOR_BACKUP", ">secret", 1)
		args := []any{"ACL", "SETUSER"}
		for _, word := range strings.Fields(line)[1:] {
			args = append(args, word)
		}
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	db, err := redisdb.Open("redis://parlor-backup:secret@" + server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := backup.Create(t.Context(), db, filepath.Join(t.TempDir(), "a"), noLedgers); err != nil {
		t.Errorf("the backup: %v", err)
	}
	if err := db.Client.Get(t.Context(), "key").Err(); !redis.HasErrorPrefix(err, "NOPERM") {
		t.Errorf("a read: %v", err)
	}
	wrong, err := redisdb.Open("redis://parlor-backup:wrong@" + server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = wrong.Close() })
	dir := filepath.Join(t.TempDir(), "b")
	if _, err := backup.Create(t.Context(), wrong, dir, noLedgers); err == nil {
		t.Error("a wrong password is accepted")
	}
	if _, err := backup.Read(dir); err == nil {
		t.Error("what failed is a backup")
	}
}

func TestADamagedCopyIsNotRestored(t *testing.T) {
	server := redistest.StartFor(t)
	db, err := redisdb.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	fill(t, db)
	dir := t.TempDir()
	m, err := backup.Create(t.Context(), db, dir, noLedgers)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, m.Masters[0].File)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := append([]byte{}, whole...)
	changed[len(changed)/2] ^= 1
	for why, content := range map[string][]byte{"a bit": changed, "half": whole[:len(whole)/2], "nothing": nil} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		to := t.TempDir()
		if err := backup.Restore(dir, "", to); err == nil {
			t.Errorf("%s: it was restored", why)
		}
		if names, _ := os.ReadDir(to); len(names) > 0 {
			t.Errorf("%s: %s was written", why, names[0].Name())
		}
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := os.WriteFile(filepath.Join(to, "dump.rdb"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for why, err := range map[string]error{
		"beside a dump": backup.Restore(dir, "", to), "other slots": backup.Restore(dir, "0-1", t.TempDir()),
		"no backup": backup.Restore(t.TempDir(), "", t.TempDir()),
	} {
		if err == nil {
			t.Errorf("%s: it was restored", why)
		}
	}
}
