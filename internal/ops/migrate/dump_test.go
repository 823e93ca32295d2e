package migrate_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// dumpHead is the first line of a dump.
type dumpHead struct {
	DumpedMS     int64    `json:"dumped_ms"`
	RefreshToken string   `json:"refresh_token"`
	ServerKeys   []string `json:"server_keys"`
	BoughtKey    string   `json:"bought_key"` // the Idempotency-Key with which Ann bought two hats
}

type dumpLine struct {
	Key   string       `json:"key"`
	Type  string       `json:"type"`
	TTLMS int64        `json:"ttl_ms,omitzero"`
	Value wire.RawJSON `json:"value"`
}

// dumpTime matches the times in a dump, which are milliseconds.
var dumpTime = regexp.MustCompile(`\b1[78]\d{11}\b`)

// loadDump writes testdata/layout1.jsonl into a store, as if it had been made at a time.
func loadDump(t testing.TB, db *redisdb.DB, at time.Time) dumpHead {
	t.Helper()
	file := testkit.Must(os.Open("testdata/layout1.jsonl"))(t)
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	var head dumpHead
	if !lines.Scan() || wire.Unmarshal(lines.Bytes(), &head) != nil {
		t.Fatal("the dump has no head")
	}
	later := at.UnixMilli() - head.DumpedMS
	ctx := t.Context()
	testkit.Must(db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for lines.Scan() {
			text := slices.Clone(lines.Bytes())
			if !bytes.Contains(text, []byte("}:save")) { // the time of a save is signed
				text = dumpTime.ReplaceAllFunc(text, func(number []byte) []byte {
					ms, _ := strconv.ParseInt(string(number), 10, 64)
					return strconv.AppendInt(nil, ms+later, 10)
				})
			}
			var line dumpLine
			if err := wire.Unmarshal(text, &line); err != nil {
				return err
			}
			if err := loadLine(t, p, line); err != nil {
				return fmt.Errorf("%s: %w", line.Key, err)
			}
			if line.TTLMS > 0 {
				p.PExpireAt(ctx, line.Key, at.Add(time.Duration(line.TTLMS)*time.Millisecond))
			}
		}
		return lines.Err()
	}))(t)
	return head
}

func loadLine(t testing.TB, p redis.Pipeliner, line dumpLine) error {
	ctx := t.Context()
	switch line.Type {
	case "string":
		var text string
		if err := wire.Unmarshal(line.Value, &text); err != nil {
			return err
		}
		p.Set(ctx, line.Key, text, 0)
	case "hash":
		var fields map[string]string
		if err := wire.Unmarshal(line.Value, &fields); err != nil {
			return err
		}
		p.HSet(ctx, line.Key, fields)
	case "set":
		var members []string
		if err := wire.Unmarshal(line.Value, &members); err != nil {
			return err
		}
		p.SAdd(ctx, line.Key, members)
	case "zset":
		var scores map[string]int64
		if err := wire.Unmarshal(line.Value, &scores); err != nil {
			return err
		}
		for member, score := range scores {
			p.ZAdd(ctx, line.Key, redis.Z{Score: float64(score), Member: member})
		}
	case "stream":
		var entries [][2]wire.RawJSON
		if err := wire.Unmarshal(line.Value, &entries); err != nil {
			return err
		}
		for _, entry := range entries {
			var id string
			var values []string
			if err := wire.Unmarshal(entry[0], &id); err != nil {
				return err
			}
			if err := wire.Unmarshal(entry[1], &values); err != nil {
				return err
			}
			p.XAdd(ctx, &redis.XAddArgs{Stream: line.Key, ID: id, Values: values})
		}
	default:
		return fmt.Errorf("the type %q is not known", line.Type)
	}
	return nil
}
