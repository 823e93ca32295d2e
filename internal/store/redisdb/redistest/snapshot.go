package redistest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// StoredKey is what a store holds under one key.
type StoredKey struct {
	Type string // as TYPE replies
	// Values are the elements; of a hash fields and values by turns, of a zset members and scores, of
	// a stream only how many there are.
	Values []string
	TTL    time.Duration // until it expires; 0 when it stays
}

// Text returns the values with spaces between them: a string as it is.
func (k StoredKey) Text() string { return strings.Join(k.Values, " ") }

// Field returns a field of a hash, "" when it is absent.
func (k StoredKey) Field(name string) string {
	for pair := range slices.Chunk(k.Values, 2) {
		if pair[0] == name {
			return pair[1]
		}
	}
	return ""
}

// Names returns the fields of a hash or the members of a zset, sorted.
func (k StoredKey) Names() []string {
	var names []string
	for pair := range slices.Chunk(k.Values, 2) {
		names = append(names, pair[0])
	}
	return slices.Sorted(slices.Values(names))
}

// Snapshot is what a store holds under the keys of one hash tag, by key.
type Snapshot map[string]StoredKey

// readSnapshot lists type, time to live and values of every key that starts with a prefix. Its one
// key chooses the server of a Cluster.
const readSnapshot = `
local readers = {string = {'GET'}, hash = {'HGETALL'}, list = {'LRANGE', 0, -1}, set = {'SMEMBERS'},
  zset = {'ZRANGE', 0, -1, 'WITHSCORES'}, stream = {'XLEN'}}
local found = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
  local kind = redis.call('TYPE', key)
  if type(kind) == 'table' then kind = kind.ok end
  local reader = readers[kind]
  local values = redis.call(reader[1], key, unpack(reader, 2))
  if type(values) ~= 'table' then values = {values} end
  found[#found + 1] = {key, kind, redis.call('PTTL', key), values}
end
return found`

// TestingT has the methods of testing.TB that TakeSnapshot calls.
type TestingT interface {
	Helper()
	Fatalf(format string, args ...any)
	Context() context.Context
}

// TakeSnapshot reads every key that starts with a hash tag and a colon, "{e:7}:", in one step.
func TakeSnapshot(t TestingT, db *redisdb.DB, tag string) Snapshot {
	t.Helper()
	found, err := db.Client.Eval(t.Context(), readSnapshot, []string{tag}, tag).Slice()
	if err != nil {
		t.Fatalf("read the keys of %s: %v", tag, err)
	}
	snapshot := Snapshot{}
	for _, entry := range found {
		parts := entry.([]any)
		kind, ttl := parts[1].(string), parts[2].(int64)
		snapshot[parts[0].(string)] = StoredKey{
			Type: kind, Values: listValues(kind, parts[3].([]any)), TTL: time.Duration(max(0, ttl)) * time.Millisecond,
		}
	}
	return snapshot
}

// listValues returns values in an order of their own: that of a hash or a set is random.
func listValues(kind string, values []any) []string {
	width := 1
	if kind == "hash" || kind == "zset" {
		width = 2
	}
	var chunks [][]string
	for chunk := range slices.Chunk(values, width) {
		texts := make([]string, width)
		for i, value := range chunk {
			texts[i] = fmt.Sprint(value)
		}
		chunks = append(chunks, texts)
	}
	if kind == "hash" || kind == "set" {
		slices.SortFunc(chunks, slices.Compare)
	}
	return slices.Concat(chunks...)
}

// Changed returns the keys that differ, sorted. How long a key stays does not count, only whether
// it expires.
func (s Snapshot) Changed(after Snapshot) []string {
	changed := map[string]bool{}
	for key := range maps.Keys(after) {
		changed[key] = !s[key].equals(after[key])
	}
	for key := range maps.Keys(s) {
		changed[key] = !s[key].equals(after[key])
	}
	maps.DeleteFunc(changed, func(_ string, differs bool) bool { return !differs })
	return slices.Sorted(maps.Keys(changed))
}

// Diff returns the keys that differ with both values, for the message of a test; "" for none.
func (s Snapshot) Diff(after Snapshot) string {
	var text strings.Builder
	for _, key := range s.Changed(after) {
		fmt.Fprintf(&text, "%s\n  was %v\n  is  %v\n", key, s[key], after[key])
	}
	return text.String()
}

func (k StoredKey) equals(other StoredKey) bool {
	return k.Type == other.Type && slices.Equal(k.Values, other.Values) && (k.TTL > 0) == (other.TTL > 0)
}
