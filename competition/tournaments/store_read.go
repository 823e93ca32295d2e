package tournaments

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

var (
	entrantLayout = redisdb.PackedLayout{
		Name: "an entrant of a tournament", Separator: '|', Layout: scripts.TourEntrant,
	}
	matchLayout = redisdb.PackedLayout{
		Name: "a match of a tournament", Separator: '|', Layout: scripts.TourMatch,
	}
)

// storedEntrant is an entrant as the store has it.
type storedEntrant struct {
	userID    int64
	state     EntrantStatus // joined, checked_in, out or disqualified
	joinedAt  time.Time
	checkedAt *time.Time
	stake     wallet.Units
	profile   string // JSON
}

// isOut reports whether the player is not paired any more.
func (e *storedEntrant) isOut() bool { return e.state == EntrantOut || e.state == EntrantDisqualified }

// mayWin reports whether the player has a place among the scores. A player who leaves after the
// start has one. A player who did not check in has none, because the fee may have gone back.
func (e *storedEntrant) mayWin(t *tour) bool {
	return e.state != EntrantDisqualified && (e.checkedAt != nil || !t.needsCheckIn)
}

func decodeEntrant(userID int64, text string) (storedEntrant, error) {
	r := entrantLayout.Split(text)
	e := storedEntrant{
		userID: userID, state: EntrantStatus(r.Text("state")), joinedAt: r.Time("joined"),
		stake: wallet.Units(r.Int("stake")), profile: r.Text("profile"),
	}
	if r.Text("checked") != "" {
		e.checkedAt = new(r.Time("checked"))
	}
	return e, r.Err()
}

func (e *storedEntrant) user() (p users.Profile, err error) {
	err = wire.Unmarshal([]byte(e.profile), &p)
	return p, err
}

func decodeMatch(id, text string) (Match, error) {
	r := matchLayout.Split(text)
	m := Match{ID: id, Status: MatchStatus(r.Text("state")), Attempt: int(r.Int("attempt")), Players: []MatchPlayer{}}
	m.Round, _, _ = ParseMatchID(id)
	if r.Text("deadline") != "" && m.Status != MatchDecided {
		m.Deadline = new(r.Time("deadline"))
	}
	if room := r.Text("room"); room != "" {
		m.RoomID = &room
	}
	if r.Text("winner") != "" {
		m.WinnerID = new(r.Int("winner"))
	}
	if reason := MatchReason(r.Text("reason")); reason != "" {
		m.Reason = &reason
	}
	var errs []error
	for one := range strings.SplitSeq(r.Text("players"), ",") {
		if one == "" {
			continue
		}
		user, seed, _ := strings.Cut(one, ":")
		userID, userErr := strconv.ParseInt(user, 10, 64)
		number, seedErr := strconv.Atoi(seed)
		errs = append(errs, userErr, seedErr)
		m.Players = append(m.Players, MatchPlayer{userID, number})
	}
	if err := errors.Join(append(errs, r.Err())...); err != nil {
		return Match{}, fmt.Errorf("decode the match %s: %w", id, err)
	}
	return m, nil
}

// encodeNewMatch returns a match as tour_pair takes it, without the deadline.
func encodeNewMatch(m *Match) string {
	winner, reason := "", ""
	if m.WinnerID != nil {
		winner = strconv.FormatInt(*m.WinnerID, 10)
	}
	if m.Reason != nil {
		reason = string(*m.Reason)
	}
	players := make([]string, len(m.Players))
	for i, p := range m.Players {
		players[i] = strconv.FormatInt(p.UserID, 10) + ":" + strconv.Itoa(p.Seed)
	}
	return strings.Join([]string{
		string(m.Status), strconv.Itoa(m.Attempt), "", winner, reason, strings.Join(players, ","),
	}, "|")
}

// readEntrants returns up to limit entrants in the order of joining, after the number of a join,
// and the number after which the next ones come, 0 for none. They are fewer than limit where one
// left between the two reads.
func (s *store) readEntrants(
	ctx context.Context, t *tour, after int64, limit int,
) (list []storedEntrant, last int64, err error) {
	page, err := s.db.Client.ZRangeByScoreWithScores(ctx, keys.TourOrder(t.gameID, t.id), &redis.ZRangeBy{
		Min: "(" + strconv.FormatInt(after, 10), Max: "+inf", Count: int64(limit),
	}).Result()
	if err != nil || len(page) == 0 {
		return nil, 0, redisdb.WrapError("list entrants", err)
	}
	ids := make([]string, len(page))
	for i, one := range page {
		ids[i], _ = one.Member.(string)
	}
	records, err := s.db.Client.HMGet(ctx, keys.TourEntrants(t.gameID, t.id), ids...).Result()
	if err != nil {
		return nil, 0, redisdb.WrapError("read entrants", err)
	}
	for i, record := range records {
		text, ok := record.(string)
		if !ok { // left between the two reads
			continue
		}
		userID, idErr := strconv.ParseInt(ids[i], 10, 64)
		e, err := decodeEntrant(userID, text)
		if err := errors.Join(idErr, err); err != nil {
			return nil, 0, err
		}
		list = append(list, e)
	}
	if len(page) == limit { // whether or not one of them has left
		last = int64(page[len(page)-1].Score)
	}
	return list, last, nil
}

// readAllEntrants returns every entrant in the order of joining.
func (s *store) readAllEntrants(ctx context.Context, t *tour) ([]storedEntrant, error) {
	ids, err := s.db.Client.ZRange(ctx, keys.TourOrder(t.gameID, t.id), 0, -1).Result()
	if err != nil {
		return nil, redisdb.WrapError("list entrants", err)
	}
	records, err := s.db.Client.HGetAll(ctx, keys.TourEntrants(t.gameID, t.id)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read entrants", err)
	}
	list := make([]storedEntrant, 0, len(ids))
	for _, id := range ids {
		record, ok := records[id]
		if !ok { // left between the two reads
			continue
		}
		userID, idErr := strconv.ParseInt(id, 10, 64)
		e, err := decodeEntrant(userID, record)
		if err := errors.Join(idErr, err); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// readSeeds returns the user ids of the players in the order of their seeds. It returns none before
// the first round.
func (s *store) readSeeds(ctx context.Context, t *tour) ([]int64, error) {
	text, err := s.db.Client.HGet(ctx, keys.Tour(t.gameID, t.id), "seeds").Result()
	if errors.Is(err, redis.Nil) || text == "" {
		return nil, nil
	}
	if err != nil {
		return nil, redisdb.WrapError("read the seeds", err)
	}
	seeds := make([]int64, 0, t.entrants)
	for one := range strings.SplitSeq(text, ",") {
		userID, err := strconv.ParseInt(one, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("decode the seeds of tournament %d: %w", t.id, err)
		}
		seeds = append(seeds, userID)
	}
	return seeds, nil
}

// roundInfo is a round as the store has it.
type roundInfo struct {
	startedAt time.Time
	matches   int
	readAt    time.Time // by the clock of this node
}

// readRound returns a round that has begun.
func (s *store) readRound(ctx context.Context, t *tour, round int) (roundInfo, error) {
	text, err := s.db.Client.HGet(ctx, keys.Tour(t.gameID, t.id), keys.TourRoundField(round)).Result()
	if err != nil {
		return roundInfo{}, redisdb.WrapError("read a round", err)
	}
	started, count, _ := strings.Cut(text, "|")
	v := redisdb.NewValues("a round", []string{started, count})
	info := roundInfo{startedAt: v.NextTime(), matches: int(v.NextInt()), readAt: time.Now()}
	return info, v.Err()
}

// readMatches returns matches of a round, from a number on.
func (s *store) readMatches(ctx context.Context, t *tour, round, first, count int) ([]Match, error) {
	if count <= 0 {
		return nil, nil
	}
	ids := make([]string, count)
	for i := range ids {
		ids[i] = MatchID(round, first+i)
	}
	records, err := s.db.Client.HMGet(ctx, keys.TourMatches(t.gameID, t.id), ids...).Result()
	if err != nil {
		return nil, redisdb.WrapError("read matches", err)
	}
	list := make([]Match, 0, count)
	for i, record := range records {
		text, ok := record.(string)
		if !ok {
			return nil, fmt.Errorf("tournament %d has no match %s", t.id, ids[i])
		}
		m, err := decodeMatch(ids[i], text)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// readMatch returns one match. It returns false when the match does not exist.
func (s *store) readMatch(ctx context.Context, t *tour, id string) (Match, bool, error) {
	text, err := s.db.Client.HGet(ctx, keys.TourMatches(t.gameID, t.id), id).Result()
	if errors.Is(err, redis.Nil) {
		return Match{}, false, nil
	}
	if err != nil {
		return Match{}, false, redisdb.WrapError("read a match", err)
	}
	m, err := decodeMatch(id, text)
	return m, err == nil, err
}

// readAllMatches returns the matches of every round.
func (s *store) readAllMatches(ctx context.Context, t *tour) ([]Match, error) {
	if t.round == 0 {
		return nil, nil
	}
	records, err := s.db.Client.HGetAll(ctx, keys.TourMatches(t.gameID, t.id)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read matches", err)
	}
	list := make([]Match, 0, len(records))
	for id, text := range records {
		m, err := decodeMatch(id, text)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// listIDs returns up to n ids of a game's tournaments, newest first, below before unless that is 0.
func (s *store) listIDs(ctx context.Context, gameID, before int64, n int) ([]int64, error) {
	by := &redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: int64(n)}
	if before > 0 {
		by.Max = "(" + strconv.FormatInt(before, 10)
	}
	members, err := s.db.Client.ZRevRangeByScore(ctx, keys.Tours(gameID), by).Result()
	if err != nil {
		return nil, redisdb.WrapError("list tournaments", err)
	}
	v := redisdb.NewValues("a list of tournaments", members)
	ids := make([]int64, 0, len(members))
	for v.Remaining() > 0 {
		ids = append(ids, v.NextInt())
	}
	return ids, v.Err()
}

// loadEach returns those of the tournaments that exist, in the order of the ids.
func (s *store) loadEach(ctx context.Context, gameID int64, ids []int64) ([]*tour, error) {
	reads := make([]*redis.SliceCmd, len(ids))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			reads[i] = p.HMGet(ctx, keys.Tour(gameID, id), tourFields...)
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read tournaments", err)
	}
	list := make([]*tour, 0, len(ids))
	for i, read := range reads {
		if read.Val()[0] == nil {
			continue
		}
		t, err := decodeTour(gameID, ids[i], read.Val())
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// listDue returns up to n tournaments of a game to look at by a time, and whether there are others
// to come before soon.
func (s *store) listDue(
	ctx context.Context, gameID int64, now, soon time.Time, n int,
) (ids []int64, more bool, err error) {
	page, err := s.db.Client.ZRangeByScoreWithScores(ctx, keys.ToursDue(gameID), &redis.ZRangeBy{
		Min: "-inf", Max: strconv.FormatInt(soon.UnixMilli(), 10), Count: int64(n) + 1,
	}).Result()
	if err != nil {
		return nil, false, redisdb.WrapError("list the tournaments that are due", err)
	}
	for _, one := range page {
		member, _ := one.Member.(string)
		id, err := strconv.ParseInt(member, 10, 64)
		if err != nil {
			return nil, false, fmt.Errorf("a list of tournaments contains %q: %w", member, err)
		}
		if int64(one.Score) > now.UnixMilli() || len(ids) == n {
			return ids, true, nil
		}
		ids = append(ids, id)
	}
	return ids, false, nil
}

// readEntrantsOf returns those of some players who are entrants.
func (s *store) readEntrantsOf(ctx context.Context, t *tour, userIDs []int64) ([]storedEntrant, error) {
	if len(userIDs) == 0 {
		return nil, nil
	}
	fields := make([]string, len(userIDs))
	for i, userID := range userIDs {
		fields[i] = strconv.FormatInt(userID, 10)
	}
	records, err := s.db.Client.HMGet(ctx, keys.TourEntrants(t.gameID, t.id), fields...).Result()
	if err != nil {
		return nil, redisdb.WrapError("read entrants", err)
	}
	list := make([]storedEntrant, 0, len(records))
	for i, record := range records {
		text, ok := record.(string)
		if !ok {
			continue
		}
		e, err := decodeEntrant(userIDs[i], text)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// readStates returns the states of the players of matches.
func (s *store) readStates(ctx context.Context, t *tour, matches []Match) (map[int64]EntrantStatus, error) {
	var userIDs []int64
	for i := range matches {
		for _, p := range matches[i].Players {
			userIDs = append(userIDs, p.UserID)
		}
	}
	entrants, err := s.readEntrantsOf(ctx, t, userIDs)
	states := make(map[int64]EntrantStatus, len(entrants))
	for i := range entrants {
		states[entrants[i].userID] = entrants[i].state
	}
	return states, err
}

func formatCursor(n int) string { return strconv.Itoa(n) }
