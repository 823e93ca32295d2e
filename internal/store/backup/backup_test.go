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
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func noLedgers(context.Context) (map[int64]int64, error) { return nil, nil }

const keyCount = 3000

func fill(t *testing.T, db *redisdb.DB) {
	t.Helper()
	testkit.Must(db.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range keyCount {
			p.Set(t.Context(), fmt.Sprintf("key:%d", i), strings.Repeat("x", 100+i), 0)
		}
		return nil
	}))(t)
}

// countRestored starts a server on each copy and counts the keys.
func countRestored(t *testing.T, dir string, m backup.Manifest) (keys int64) {
	t.Helper()
	for _, c := range m.Masters {
		server := redistest.StartForTest(t, "--appendonly", "yes")
		server.Kill()
		testkit.Check(t, os.RemoveAll(filepath.Join(server.Dir, "appendonlydir")))
		testkit.Check(t, backup.Restore(dir, c.Slots, server.Dir))
		testkit.Check(t, server.Restart())
		client := redistest.Dial(t, server)
		n := testkit.Must(client.DBSize(t.Context()).Result())(t)
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
		m := testkit.Must(backup.Create(t.Context(), db, dir, noLedgers))(t)
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
	server := redistest.StartForTest(t, "--repl-diskless-sync", "no", "--requirepass", "secret")
	db := testkit.Must(redisdb.Open("redis://:secret@" + server.Addr))(t)
	t.Cleanup(func() { _ = db.Close() })
	fill(t, db)
	dir := t.TempDir()
	m := testkit.Must(backup.Create(t.Context(), db, dir, noLedgers))(t)
	if n := countRestored(t, dir, m); n != keyCount {
		t.Errorf("%d keys; want %d", n, keyCount)
	}
}

func TestTheBackupUserCopiesAndReadsNothing(t *testing.T) {
	text := testkit.Must(os.ReadFile("../../../deploy/redis/users.acl"))(t)
	server := redistest.StartForTest(t)
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
		testkit.Check(t, admin.Do(t.Context(), args...).Err())
	}
	db := testkit.Must(redisdb.Open("redis://parlor-backup:secret@" + server.Addr))(t)
	t.Cleanup(func() { _ = db.Close() })
	testkit.Report(t, testkit.ErrorOf(backup.Create(t.Context(), db, filepath.Join(t.TempDir(), "a"), noLedgers)),
		"the backup")
	if err := db.Client.Get(t.Context(), "key").Err(); !redis.HasErrorPrefix(err, "NOPERM") {
		t.Errorf("a read: %v", err)
	}
	wrong := testkit.Must(redisdb.Open("redis://parlor-backup:wrong@" + server.Addr))(t)
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
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	fill(t, db)
	dir := t.TempDir()
	m := testkit.Must(backup.Create(t.Context(), db, dir, noLedgers))(t)
	file := filepath.Join(dir, m.Masters[0].File)
	whole := testkit.Must(os.ReadFile(file))(t)
	changed := append([]byte{}, whole...)
	changed[len(changed)/2] ^= 1
	for why, content := range map[string][]byte{"a bit": changed, "half": whole[:len(whole)/2], "nothing": nil} {
		testkit.Check(t, os.WriteFile(file, content, 0o600))
		to := t.TempDir()
		if err := backup.Restore(dir, "", to); err == nil {
			t.Errorf("%s: it was restored", why)
		}
		if names, _ := os.ReadDir(to); len(names) > 0 {
			t.Errorf("%s: %s was written", why, names[0].Name())
		}
	}
	testkit.Check(t, os.WriteFile(file, whole, 0o600))
	to := t.TempDir()
	testkit.Check(t, os.WriteFile(filepath.Join(to, "dump.rdb"), nil, 0o600))
	for why, err := range map[string]error{
		"beside a dump": backup.Restore(dir, "", to), "other slots": backup.Restore(dir, "0-1", t.TempDir()),
		"no backup": backup.Restore(t.TempDir(), "", t.TempDir()),
	} {
		if err == nil {
			t.Errorf("%s: it was restored", why)
		}
	}
}
