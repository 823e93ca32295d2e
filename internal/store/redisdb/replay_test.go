package redisdb_test

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// storedAs has the commands that the append-only file does not have under their own names.
var storedAs = map[string]string{"PEXPIRE": "PEXPIREAT", "EXPIRE": "PEXPIREAT"}

// A command that a script writes with and the user default may not run is skipped at the restart of
// Redis, so every one of them is asked for.
func TestTheRightsOfEveryCommandThatScriptsWriteWithAreAskedFor(t *testing.T) {
	client := redistest.Dial(t, redistest.StartForTest(t))
	known := testkit.Must(client.Command(t.Context()).Result())(t)
	call := regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)
	writes := map[string]bool{}
	for _, s := range scripts.All() {
		text := s.EmbeddedSource
		if with := s.WithFeed(); with != nil {
			text = with.EmbeddedSource
		}
		for _, m := range call.FindAllStringSubmatch(text, -1) {
			info, ok := known[strings.ToLower(m[1])]
			if !ok {
				t.Fatalf("%s calls %s, which Redis does not have", s.Name, m[1])
			}
			if slices.Contains(info.Flags, "write") {
				writes[m[1]] = true
			}
		}
	}
	if len(writes) < 10 {
		t.Fatalf("only %v are found in the scripts", slices.Sorted(maps.Keys(writes)))
	}
	for command := range writes {
		if stored, ok := storedAs[command]; ok {
			command = stored
		}
		if _, ok := redisdb.ReplayedCommands[command]; !ok {
			t.Errorf("scripts write by %s, and nobody asks whether it can be read back", command)
		}
	}
}

func TestAStoreThatCannotReadBackItsAppendOnlyFileIsRefused(t *testing.T) {
	server := redistest.StartForTest(t, "--appendonly", "yes")
	admin := redistest.Dial(t, server)
	setUser := func(rules ...any) {
		t.Helper()
		testkit.Check(t, admin.Do(t.Context(), append([]any{"ACL", "SETUSER"}, rules...)...).Err())
	}
	const canAsk = "+acl|dryrun"
	setUser("node", "on", ">secret", "~*", "&*", "+@all", "-@dangerous", "-@admin", "+info", canAsk)
	db := openServer(t, "redis://node:secret@"+server.Addr)
	required := redisdb.Requirements{FreeShards: 1, Durable: true}
	prober := db.NewProber(required)

	for _, c := range []struct {
		name  string
		rules []any
		want  string // "" when the store is good
	}{
		{"all rights", []any{"default", "reset", "on", "nopass", "~*", "&*", "+@all"}, ""},
		{"no rights", []any{"default", "resetkeys", "-@all", "+acl", "+config"}, "may not write any key"},
		{"some keys", []any{"default", "resetkeys", "~{e:*", "+@all"}, "may not write any key"},
		{"one command less", []any{"default", "resetkeys", "~*", "-hset"}, "may not run HSET on any key"},
		{"nobody may ask", []any{"node", "-acl|dryrun"}, "give that user +acl|dryrun"},
		{"as it was", []any{"node", canAsk}, "may not run HSET on any key"},
		{"off, with all rights", []any{"default", "~*", "&*", "+@all"}, ""},
	} {
		setUser(c.rules...)
		err := db.CheckRequirements(t.Context(), required)
		unmet := redisdb.RequirementError{}
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!errors.As(err, &unmet) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		prober.ForgetReplay()
		health := prober.Probe(t.Context())[0]
		isGood, keeps := c.want == "", redisdb.KeepsMemory
		if isGood {
			keeps = redisdb.KeepsDisk
		}
		if health.OK != isGood || !strings.Contains(health.Detail, c.want) || health.Keeps != keeps {
			t.Errorf("%s: a probe finds %v %q, which keeps %q; want %q", c.name, health.OK, health.Detail, health.Keeps, c.want)
		}
	}
}

// An answer is believed for a while, and never of a server that started again.
func TestAServerThatStartedAgainIsAskedAtOnce(t *testing.T) {
	server := redistest.StartForTest(t, "--appendonly", "yes", "--user", "node", "on", ">secret", "~*", "&*", "+@all")
	db := openServer(t, "redis://node:secret@"+server.Addr)
	prober := db.NewProber(redisdb.Requirements{FreeShards: 1, Durable: true})
	if health := prober.Probe(t.Context())[0]; !health.OK {
		t.Fatal(health.Detail)
	}
	reduce := func() {
		t.Helper()
		testkit.Check(t, redistest.Dial(t, server).Do(t.Context(), "ACL", "SETUSER", "default", "-hset").Err())
	}
	reduce()
	if health := prober.Probe(t.Context())[0]; !health.OK {
		t.Errorf("the answer is not believed: %s", health.Detail)
	}
	server.Kill()
	testkit.Check(t, server.Restart())
	reduce()
	redistest.Eventually(t, "the new server is asked", func() bool {
		health := prober.Probe(t.Context())[0]
		return !health.OK && strings.Contains(health.Detail, "HSET")
	})
}
