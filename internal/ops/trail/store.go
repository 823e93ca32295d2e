package trail

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

type store struct {
	db   *redisdb.DB
	most records // of each list
}

// records is the number of records of a list that are kept.
type records struct{ operators, server, routine int }

// The fields of an entry, which trail_append writes.
const (
	atField  = "at"
	actField = "act"
)

// markTTL is longer than go-redis resends a command whose reply was lost.
const markTTL = time.Minute

const (
	// readRecords is how many records of all lists together one read wants, at least readOfList of
	// each.
	readRecords = 400
	readOfList  = 5
	// listsAtOnce bounds the lists that one round trip reads.
	listsAtOnce = 500
)

// append appends a record to its list, once for each nonce.
func (s store) append(ctx context.Context, r record) error {
	text, err := wire.Marshal(r.act)
	if err != nil {
		return err
	}
	list, most, game := keys.Trail(string(principal.Operator)), s.most.operators, ""
	if id := r.act.GameID; id != nil {
		list, most, game = keys.ServerTrail(*id), s.most.server, strconv.FormatInt(*id, 10)
		if r.isRoutine {
			list, most = keys.RoutineTrail(*id), s.most.routine
		}
	}
	reply, err := s.db.RunScript(ctx, scripts.TrailAppend,
		[]string{list, keys.TrailNumber(), keys.TrailMark(r.nonce), keys.TrailGames()},
		scripts.TrailAppendArgs{Act: text, Most: most, MarkMS: markTTL.Milliseconds(), Game: game}.List()...)
	if err != nil || reply.Status == scripts.Replay {
		return err
	}
	return reply.Err(scripts.TrailAppend)
}

// lists returns the keys of the lists that may have records of a game, 0 for those of all games and
// of operators.
func (s store) lists(ctx context.Context, gameID int64) ([]string, error) {
	if gameID != 0 {
		return []string{keys.ServerTrail(gameID), keys.RoutineTrail(gameID), keys.Trail(string(principal.Server))}, nil
	}
	names := []string{keys.Trail(string(principal.Operator)), keys.Trail(string(principal.Server))}
	games, err := s.db.Client.SMembers(ctx, keys.TrailGames()).Result()
	if err != nil {
		return nil, redisdb.WrapError("list the games of the trail", err)
	}
	v := redisdb.NewValues("the games of the trail", games)
	for v.Remaining() > 0 {
		id := v.NextInt()
		names = append(names, keys.ServerTrail(id), keys.RoutineTrail(id))
	}
	return names, v.Err()
}

// readBefore returns the newest records of some lists with a smaller number, newest first; 0 stands
// for no bound. more reports whether there are older ones.
func (s store) readBefore(ctx context.Context, names []string, number int64) (list []Record, more bool, err error) {
	newest := "+"
	if number > 0 {
		newest = "(" + strconv.FormatInt(number, 10) + "-0"
	}
	ofEach := max(readRecords/len(names), readOfList)
	var lists []*redis.XMessageSliceCmd
	for chunk := range slices.Chunk(names, listsAtOnce) {
		_, err = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, name := range chunk {
				lists = append(lists, p.XRevRangeN(ctx, name, newest, "-", int64(ofEach)))
			}
			return nil
		})
		if err != nil {
			return nil, false, redisdb.WrapError("read the trail", err)
		}
	}
	complete := int64(0) // every record of all lists above this number was read
	for _, l := range lists {
		for i, entry := range l.Val() {
			r, err := decodeRecord(entry)
			if err != nil {
				return nil, false, err
			}
			list = append(list, r)
			if i == ofEach-1 {
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
