package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestBoardsShowTheirTopAndWhatDoesNotFit(t *testing.T) {
	server := redistest.StartForTest(t, "--appendonly", "yes")
	store, client := server.URL(), redistest.Dial(t, server)
	t.Setenv("PARLOR_SIGNING_KEY", testSigningKey)
	must(t, "seed", "--redis-url", store)
	boards := func(args ...string) (int, string) {
		status, out, stderr := command(t, append(append([]string{"boards"}, args...), "--redis-url", store)...)
		return status, out + stderr
	}
	first := regexp.MustCompile(`(?m)^ *1 +1250 +\S+Z +1 +ada *$`)
	if status, out := boards("top", "weekly", "--game", "1"); status != 0 || !first.MatchString(out) ||
		strings.Index(out, "cleo") > strings.Index(out, "bob") {
		t.Errorf("exits %d:\n%s", status, out)
	}
	status, out := boards("top", "weekly", "--game", "1", "-n", "2", "--season", "1", "--json")
	var entries []struct {
		Rank int `json:"rank"`
	}
	if err := wire.Unmarshal([]byte(out), &entries); err != nil || status != 0 || len(entries) != 2 ||
		entries[1].Rank != 2 {
		t.Errorf("exits %d: %v\n%s", status, err, out)
	}
	for _, args := range [][]string{
		{"top", "none", "--game", "1"},
		{"top", "weekly", "--game", "9"},
		{"top", "weekly", "--game", "0"},
		{"top", "weekly", "--game", "1", "--season", "9"},
		{"top", "weekly", "--game", "1", "-n", "0"},
		{"verify", "none", "--game", "1"},
		{"verify", "weekly", "--game", "1", "--season", "9"},
	} {
		if status, out := boards(args...); status != 1 || !strings.HasPrefix(out, "parlor: ") {
			t.Errorf("%v exits %d: %s", args, status, out)
		}
	}

	for _, args := range [][]string{{"verify", "--game", "1"}, {"verify", "weekly", "--game", "1"}} {
		if status, out := boards(args...); status != 0 || out != "weekly, season 1: 3 entries, 0 hidden: fits\n" {
			t.Errorf("%v exits %d: %s", args, status, out)
		}
	}
	changes := func() string {
		counter := regexp.MustCompile(`rdb_changes_since_last_save:\d+`)
		return counter.FindString(client.Info(t.Context(), "persistence").Val())
	}
	before := changes()
	if _, out := boards("verify", "--game", "1"); changes() != before || before == "" {
		t.Errorf("verify changed the store: %s, %s", before, out)
	}
	shard := keys.NewBoardShard(1, "weekly", 0)
	testkit.Check(t, client.ZPopMin(t.Context(), keys.BoardRank(shard, 1)).Err())
	status, out = boards("verify", "--game", "1")
	if status != 1 || !strings.Contains(out, "DOES NOT FIT") ||
		!strings.Contains(out, "player 1 has a record and is not in") {
		t.Errorf("with an entry that is in no order it exits %d: %s", status, out)
	}
	var reports []struct {
		Differences []struct {
			UserID int64 `json:"userId"`
		} `json:"differences"`
	}
	status, out = boards("verify", "--game", "1", "--json")
	if err := wire.Unmarshal([]byte(out), &reports); err != nil || status != 1 || len(reports[0].Differences) != 1 ||
		reports[0].Differences[0].UserID != 1 {
		t.Errorf("exits %d: %v\n%s", status, err, out)
	}
}
