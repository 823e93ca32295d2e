package trail

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/wire"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

type store struct {
	db         *redisdb.DB
	maxRecords int // of each list
}

// The fields of an entry, which trail_append writes.
const (
	atField  = "at"
	actField = "act"
)

// markTTL is longer than go-redis resends a command whose reply was lost.
const markTTL = time.Minute

// readRecords is how many records of each list one read returns.
const readRecords = 200

// append appends an act to the list of a role, once for each nonce.
func (s store) append(ctx context.Context, role principal.Role, nonce string, act Act) error {
	text, err := wire.Marshal(act)
	if err != nil {
		return err
	}
	reply, err := s.db.RunScript(ctx, scripts.TrailAppend,
		[]string{keys.Trail(string(role)), keys.TrailNumber(), keys.TrailMark(nonce)},
		text, s.maxRecords, markTTL.Milliseconds())
	if err != nil || reply.Status == scripts.Replay {
		return err
	}
	return reply.Err(scripts.TrailAppend)
}

// readBefore returns the newest records with a smaller number, newest first; 0 stands for no bound.
// more reports whether there are older ones.
func (s store) readBefore(ctx context.Context, number int64) (list []Record, more bool, err error) {
	newest := "+"
	if number > 0 {
		newest = "(" + strconv.FormatInt(number, 10) + "-0"
	}
	lists := make([]*redis.XMessageSliceCmd, 2)
	_, err = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, role := range []principal.Role{principal.Operator, principal.Server} {
			lists[i] = p.XRevRangeN(ctx, keys.Trail(string(role)), newest, "-", readRecords)
		}
		return nil
	})
	if err != nil {
		return nil, false, redisdb.WrapError("read the trail", err)
	}
	complete := int64(0) // every record of both lists above this number was read
	for _, l := range lists {
		for i, entry := range l.Val() {
			r, err := decodeRecord(entry)
			if err != nil {
				return nil, false, err
			}
			list = append(list, r)
			if i == readRecords-1 {
				complete, more = max(complete, r.ID), true
			}
		}
	}
	list = slices.DeleteFunc(list, func(r Record) bool { return r.ID < complete })
	slices.SortFunc(list, func(a, b Record) int { return cmp.Compare(b.ID, a.ID) })
	return list, more, nil
}

func decodeRecord(entry redis.XMessage) (Record, error) {
	text := func(field string) string {
		value, _ := entry.Values[field].(string)
		return value
	}
	f := redisdb.NewFields("a record of the trail", map[string]string{atField: text(atField)})
	r := Record{At: f.Time(atField)}
	if f.Err() != nil {
		return r, f.Err()
	}
	number, _, _ := strings.Cut(entry.ID, "-")
	var err error
	if r.ID, err = strconv.ParseInt(number, 10, 64); err == nil {
		err = wire.Unmarshal([]byte(text(actField)), &r.Act)
	}
	if err != nil {
		return r, fmt.Errorf("decode the record %s of the trail: %w", entry.ID, err)
	}
	return r, nil
}
