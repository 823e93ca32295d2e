package leaderboards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// store reads and writes boards in Redis.
type store struct{ db *redisdb.DB }

var seasonPacked = redisdb.PackedLayout{Name: "a season", Separator: '|', Layout: scripts.BoardSeason}

func encodeSeason(storeLayout int, s season) string {
	number, closes := redisdb.PackedInt, ""
	if s.closes != 0 {
		closes = strconv.FormatInt(s.closes, 10)
	}
	flag := map[bool]int64{true: 1}
	return seasonPacked.Join(storeLayout,
		number("opens", s.opens), redisdb.PackedText("closes", closes), number("grace", s.graceMS),
		number("definition", s.definition), number("buckets", s.buckets), number("sealed", flag[s.isSealed]),
		number("funded", flag[s.isFunded]), number("review", s.reviewMS), redisdb.PackedText("outcome", string(s.outcome)))
}

func decodeSeason(number int64, text string) (season, error) {
	packed := seasonPacked.Split(text)
	s := season{number: number, opens: packed.Int("opens")}
	if packed.Text("closes") != "" {
		s.closes = packed.Int("closes")
	}
	s.graceMS, s.definition, s.buckets = packed.Int("grace"), packed.Int("definition"), packed.Int("buckets")
	s.isSealed, s.isFunded = packed.Bool("sealed"), packed.Bool("funded")
	s.reviewMS, s.outcome = packed.Int("review"), outcome(packed.Text("outcome"))
	return s, packed.Err()
}

// storedDefinition is a definition as the store has it.
type storedDefinition struct {
	*Definition

	By string `json:"by,omitzero"`
}

func decodeBoard(gameID int64, key string, hash redisdb.Hash) (*board, error) {
	f := redisdb.NewFieldsOfHash("the board "+key, hash)
	b := &board{
		gameID: gameID, key: key, version: f.Text(keys.BoardVersionField), createdAt: f.Time(keys.BoardCreatedField),
		isDeleted: f.Has(keys.BoardDeletedField), definitions: map[int64]*Definition{}, bucketsOfNext: minBuckets,
	}
	var errs []error
	for field, value := range hash.All {
		if number, ok := keys.ParseBoardSeasonField(field); ok {
			n, err := strconv.ParseInt(number, 10, 64)
			s, decodeErr := decodeSeason(n, value)
			errs = append(errs, err, decodeErr)
			b.seasons = append(b.seasons, s)
		} else if version, ok := keys.ParseBoardDefinitionField(field); ok {
			v, err := strconv.ParseInt(version, 10, 64)
			stored := storedDefinition{Definition: new(Definition)}
			errs = append(errs, err, wire.Unmarshal([]byte(value), &stored))
			stored.Definition.by = stored.By
			b.definitions[v] = stored.Definition
		}
	}
	slices.SortFunc(b.seasons, func(a, b season) int { return cmp.Compare(a.number, b.number) })
	if err := errors.Join(append(errs, f.Err())...); err != nil {
		return nil, err
	}
	for i := range b.seasons {
		if b.definitionOf(&b.seasons[i]) == nil {
			return nil, fmt.Errorf("decode the board %s: season %d has no definition", key, b.seasons[i].number)
		}
	}
	if len(b.seasons) == 0 {
		return nil, fmt.Errorf("decode the board %s: it has no season", key)
	}
	return b, nil
}

// load returns a board, also one that was deleted. It returns board_not_found.
func (s *store) load(ctx context.Context, gameID int64, key string) (*board, error) {
	read := s.db.ReadHashes(ctx, []string{keys.Board(gameID, key)})[0]
	switch {
	case read.Err != nil:
		return nil, read.Err
	case len(read.Fields) == 0:
		return nil, apierror.BoardNotFound
	}
	return decodeBoard(gameID, key, read.Fields)
}

// loadAll returns those boards of a game that exist. One that cannot be read is logged.
func (s *store) loadAll(ctx context.Context, gameID int64, boardKeys []string) ([]*board, error) {
	names := make([]string, len(boardKeys))
	for i, key := range boardKeys {
		names[i] = keys.Board(gameID, key)
	}
	var boards []*board
	for i, read := range s.db.ReadHashes(ctx, names) {
		if read.Err != nil && !redisdb.IsWrongType(read.Err) {
			return nil, read.Err
		}
		if len(read.Fields) == 0 && read.Err == nil {
			continue
		}
		b, err := decodeBoard(gameID, boardKeys[i], read.Fields)
		if err = cmp.Or(read.Err, err); err != nil {
			slog.ErrorContext(ctx, "a leaderboard cannot be read", "game", gameID, "board", boardKeys[i], "error", err)
			continue
		}
		boards = append(boards, b)
	}
	return boards, nil
}

// listKeys returns the keys of a game's boards, in order. It may name boards that are gone.
func (s *store) listKeys(ctx context.Context, gameID int64) ([]string, error) {
	list, err := s.db.Client.SMembers(ctx, keys.Boards(gameID)).Result()
	slices.Sort(list)
	return list, redisdb.WrapError("list the leaderboards", err)
}

// list puts a board into the index of a game that may have a number of them, and lets the leader
// look at it. It returns limit_reached.
func (s *store) list(ctx context.Context, gameID int64, key string, most, nowMS int64) error {
	var mostBoards any = most
	if strings.HasPrefix(key, tournamentPrefix) {
		mostBoards = ""
	}
	reply, err := s.db.RunScript(ctx, scripts.BoardList,
		[]string{keys.Boards(gameID), keys.BoardsDue(gameID), keys.TournamentBoards(gameID)},
		scripts.BoardListArgs{Board: key, Most: mostBoards, Due: nowMS}.List()...)
	if err != nil {
		return err
	}
	return reply.Err(scripts.BoardList)
}

// now returns the store's time in ms.
func (s *store) now(ctx context.Context) (int64, error) {
	now, err := s.db.ReadClock(ctx)
	return now.UnixMilli(), err
}

// nowToEnd is now for what ends when its time is over. It returns redisdb.ErrSkewed.
func (s *store) nowToEnd(ctx context.Context) (int64, error) {
	now, err := s.db.ReadClockToEnd(ctx)
	return now.UnixMilli(), err
}

// boardChange collects the fields of a board that a change writes. A value is a text, or a season
// that define encodes.
type boardChange struct{ fields []any }

func (c *boardChange) set(field, value string) { c.fields = append(c.fields, field, value) }

func (c *boardChange) setDefinition(version int64, d *Definition) error {
	text, err := wire.Marshal(storedDefinition{d, d.by})
	if err != nil {
		return fmt.Errorf("encode the board %s: %w", d.Board, err)
	}
	c.set(keys.BoardDefinitionField(version), string(text))
	return nil
}

func (c *boardChange) setSeason(s season) {
	c.fields = append(c.fields, keys.BoardSeasonField(s.number), s)
}

func (c *boardChange) removeSeason(number int64)      { c.set(keys.BoardSeasonField(number), "") }
func (c *boardChange) removeDefinition(version int64) { c.set(keys.BoardDefinitionField(version), "") }

func (c *boardChange) setCreated(ms int64) { c.set(keys.BoardCreatedField, strconv.FormatInt(ms, 10)) }

func (c *boardChange) setDeleted(ms int64) { c.set(keys.BoardDeletedField, strconv.FormatInt(ms, 10)) }

// define writes a change of the board of a version, "" for a new one. It returns board_exists, and
// redisdb.ErrStale.
func (s *store) define(ctx context.Context, gameID int64, key, versionRead string, c boardChange) error {
	args := scripts.BoardDefineArgs{Nonce: idempotency.NewNonce(), VersionRead: versionRead}.List(c.fields...)
	for i, value := range args {
		if one, ok := value.(season); ok {
			args[i] = encodeSeason(s.db.Layout(), one)
		}
	}
	reply, err := s.db.RunScript(ctx, scripts.BoardDefine, []string{keys.Board(gameID, key)}, args...)
	if err != nil {
		return err
	}
	return reply.Err(scripts.BoardDefine)
}

// seasonShard names the keys of a season on one shard.
type seasonShard struct {
	keys.BoardShard
	season  int64
	shards  int64
	buckets int64
}

func (b *board) shard(s *season, n int) seasonShard {
	return seasonShard{
		keys.NewBoardShard(b.gameID, b.key, n), s.number, int64(b.definitionOf(s).Shards), s.buckets,
	}
}

func (b *board) shardOf(s *season, userID int64) seasonShard {
	return b.shard(s, b.definitionOf(s).shardOf(userID))
}

// bucketOf returns the bucket of a player. All players of a shard have the same remainder by the
// number of shards, so that is left out.
func (s seasonShard) bucketOf(userID int64) int64 { return userID / s.shards % s.buckets }

func (s seasonShard) stateKey() string { return keys.BoardSeason(s.BoardShard, s.season) }
func (s seasonShard) rankKey() string  { return keys.BoardRank(s.BoardShard, s.season) }
func (s seasonShard) segmentRankKey(segment, value string) string {
	return keys.BoardSegmentRank(s.BoardShard, s.season, segment, value)
}

func (s seasonShard) entriesKey(userID int64) string {
	return keys.BoardEntries(s.BoardShard, s.season, s.bucketOf(userID))
}

func (s seasonShard) detailsKey(userID int64) string {
	return keys.BoardDetails(s.BoardShard, s.season, s.bucketOf(userID))
}

// entryKeys returns the keys of scripts that change an entry. segments is "<segment>=<value>,…".
func (s seasonShard) entryKeys(userID int64, segments, play string) []string {
	names := []string{s.stateKey(), s.rankKey(), s.entriesKey(userID), s.detailsKey(userID)}
	if play != "" {
		names = append(names, keys.BoardPlay(s.BoardShard, play))
	}
	for segment, value := range parseSegments(segments) {
		names = append(names, segmentKey(s.BoardShard, s.season, segment, value))
	}
	return names
}

// parseSegments calls yield for each segment of a text.
func parseSegments(text string) func(yield func(segment, value string) bool) {
	return func(yield func(segment, value string) bool) {
		for one := range strings.SplitSeq(text, ",") {
			segment, value, ok := strings.Cut(one, "=")
			if ok && !yield(segment, value) {
				return
			}
		}
	}
}

// submission is one run of board_submit.
type submission struct {
	board    *board
	season   *season
	to       int64 // ms from which the season takes no scores like this one, 0 for no end
	userID   int64
	score    int64  // units
	sub      int64  // likewise
	segments string // "<segment>=<value>,…" in the order of the definition
	details  string // JSON, or ""
	rules    *Rules // nil for a score that keeps no rules
	play     string // id, or ""
	caller   string // of the receipt
	receipt  idempotency.Receipt
	nonce    string
}

// receiptTTL is the lifetime of the receipt of a score with a key.
const receiptTTL = 7 * 24 * time.Hour

// submitted is the reply of board_submit.
type submitted struct {
	redisdb.Reply
	replayed bool
	isStale  bool
	storeNow int64  // ms, after stale
	segments string // that are stored, after stale
}

func (s *store) submit(ctx context.Context, in submission) (submitted, error) {
	d := in.board.definitionOf(in.season)
	at := in.board.shardOf(in.season, in.userID)
	receipt, ttl := in.receipt, receiptTTL
	if d.Operator == Sum || d.Subscore != nil && d.Subscore.Operator == Sum {
		receipt, ttl = in.receipt.OrPerCall(in.nonce, receiptTTL) // what adds up differs from any other call
	}
	names := at.entryKeys(in.userID, in.segments, in.play)
	if receipt.KeyDigest != "" {
		names = append(names, keys.BoardReceipt(at.BoardShard, in.caller, receipt.KeyDigest))
	}
	subOrder, subOperator, sub := "", "", ""
	if d.Subscore != nil {
		subOrder, subOperator, sub = string(d.Subscore.Order), string(d.Subscore.Operator), strconv.FormatInt(in.sub, 10)
	}
	rules := in.rules
	if rules == nil {
		rules = &Rules{}
	}
	step := ""
	if rules.MaxStep != nil {
		units, _ := rules.MaxStep.toUnits(d.Decimals) // checked with the definition
		step = strconv.FormatInt(units, 10)
	}
	usesPlay := ""
	if in.play != "" {
		usesPlay = "1"
	}
	most, err := s.mostEntries(ctx, in, at)
	if err != nil {
		return submitted{}, err
	}
	reply, err := s.db.RunScript(ctx, scripts.BoardSubmit, names,
		scripts.BoardSubmitArgs{
			CallArgs: scripts.CallArgs{Nonce: in.nonce, Fingerprint: receipt.Fingerprint, TTLMS: ttl.Milliseconds()},
			User:     in.userID,
			From:     in.season.opens, To: orEmpty(in.to), Order: string(d.Order), Operator: string(d.Operator),
			Units: in.score, SubOrder: subOrder, SubOperator: subOperator, SubUnits: sub, Segments: in.segments,
			Details: in.details, MostEntries: most, LongestStep: step,
			IntervalMS: orEmpty(rules.MinIntervalSeconds * 1000), MostSubmissions: orEmpty(rules.MaxSubmissions),
			Play: usesPlay, ShortestMS: rules.MinPlaySeconds * 1000, LongestMS: rules.longestPlay() * 1000,
			Number: in.season.number,
		}.List()...)
	if err != nil {
		return submitted{}, err
	}
	var r submitted
	r.Reply, r.replayed = idempotency.FirstReply(in.nonce, reply)
	if r.Status == scripts.Stale {
		v := redisdb.NewValues("a score that was not taken", r.Values)
		r.isStale, r.storeNow, r.segments = true, v.NextInt(), v.NextText()
		return r, v.Err()
	}
	return r, nil
}

// mostEntries returns how many entries the shard of a score may have, "" for any number: what
// maxEntries leaves of those on the other shards now. So nobody is refused while there is room.
// First scores that come to several shards in the same instant may go past maxEntries.
func (s *store) mostEntries(ctx context.Context, in submission, at seasonShard) (string, error) {
	d := in.board.definitionOf(in.season)
	switch {
	case d.MaxEntries == nil:
		return "", nil
	case d.Shards == 1:
		return strconv.FormatInt(*d.MaxEntries, 10), nil
	}
	hasEntry, err := s.db.Client.HExists(ctx, at.entriesKey(in.userID), strconv.FormatInt(in.userID, 10)).Result()
	if err != nil || hasEntry { // then nobody is added
		return "", redisdb.WrapError("look for an entry", err)
	}
	counts, err := s.countByShard(ctx, in.board.ranking(in.season))
	if err != nil {
		return "", err
	}
	most := *d.MaxEntries
	for n, count := range counts[0] {
		if n != at.Number() {
			most -= count
		}
	}
	return strconv.FormatInt(max(most, 0), 10), nil
}

// orEmpty returns a number as text, "" for 0.
func orEmpty(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// errorOf returns the error of a score that was refused, nil for one that was taken.
func errorOf(r redisdb.Reply) error {
	if r.Status == apierror.ScoreRejected.Code {
		v := redisdb.NewValues("a score that was refused", r.Values)
		rule := v.NextText()
		if v.Err() != nil {
			return v.Err()
		}
		return rejectedBy(rule)
	}
	return r.Err(scripts.BoardSubmit)
}

// rejectedBy returns score_rejected with the rule.
func rejectedBy(rule string) error {
	return apierror.ScoreRejected.WithReason("the score breaks the rule %s", rule).WithMember("rule", rule)
}

// maxOpenPlays bounds the open plays of a player on a board: a play is a key that stays for days.
const maxOpenPlays = 20

// playKeys returns the keys of a play and of the list of the player's plays.
func (b *board) playKeys(userID int64, playID string) (at seasonShard, names []string) {
	at = b.shardOf(&b.seasons[len(b.seasons)-1], userID)
	return at, []string{keys.BoardPlay(at.BoardShard, playID), keys.BoardPlays(at.BoardShard, userID)}
}

// startPlay stores the start of a play and returns it (ms). The player's oldest play ends when
// maxOpenPlays are open.
func (s *store) startPlay(
	ctx context.Context, b *board, userID int64, playID string, keep time.Duration,
) (int64, error) {
	var listed []string // ids of the player's plays; not known yet
	for range maxAttempts {
		at, names := b.playKeys(userID, playID)
		for _, id := range listed {
			names = append(names, keys.BoardPlay(at.BoardShard, id))
		}
		reply, err := s.db.RunScript(ctx, scripts.BoardPlayStart, names, scripts.BoardPlayStartArgs{
			PlayID: playID, User: userID, KeepMS: keep.Milliseconds(), MostPlays: maxOpenPlays,
		}.List(redisdb.Args(listed)...)...)
		switch {
		case err != nil:
			return 0, err
		case reply.Status == scripts.Stale:
			listed = reply.Values
			continue
		}
		v := redisdb.NewValues("the start of a play", reply.Values)
		start := v.NextInt()
		return start, cmp.Or(reply.Err(scripts.BoardPlayStart), v.Err())
	}
	return 0, apierror.VersionConflict
}

// dropPlay ends a play as if it had not begun.
func (s *store) dropPlay(ctx context.Context, b *board, userID int64, playID string) error {
	_, names := b.playKeys(userID, playID)
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, names[0])
		p.LRem(ctx, names[1], 1, playID)
		return nil
	})
	return redisdb.WrapError("drop a play", err)
}

// playStart returns when a play began (ms), 0 when that is not known any more.
func (s *store) playStart(ctx context.Context, b *board, userID int64, playID string) (int64, error) {
	at := b.shardOf(&b.seasons[len(b.seasons)-1], userID)
	text, err := s.db.Client.Get(ctx, keys.BoardPlay(at.BoardShard, playID)).Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	_, start, _ := strings.Cut(text, "|")
	ms, _ := strconv.ParseInt(start, 10, 64)
	return ms, redisdb.WrapError("read a play", err)
}

// changeEntry runs a script on an entry, again with the segments that it asks for. args returns its
// arguments for the segments.
func (s *store) changeEntry(
	ctx context.Context, script *scripts.Script, b *board, at *season, userID int64, args func(segments string) []any,
) error {
	segments := ""
	for range maxAttempts {
		names := b.shardOf(at, userID).entryKeys(userID, segments, "")
		reply, err := s.db.RunScript(ctx, script, names, args(segments)...)
		switch {
		case err != nil:
			return err
		case reply.Status != scripts.Stale:
			return reply.Err(script)
		}
		v := redisdb.NewValues("the segments of an entry", reply.Values)
		if segments = v.NextText(); v.Err() != nil {
			return v.Err()
		}
	}
	return apierror.VersionConflict
}

func (s *store) hide(ctx context.Context, b *board, at *season, userID int64, hide bool) error {
	flag := "0"
	if hide {
		flag = "1"
	}
	return s.changeEntry(ctx, scripts.BoardHide, b, at, userID, func(segments string) []any {
		return scripts.BoardHideArgs{User: userID, Hide: flag, Segments: segments}.List()
	})
}

func (s *store) remove(ctx context.Context, b *board, at *season, userID int64) error {
	return s.changeEntry(ctx, scripts.BoardRemove, b, at, userID, func(segments string) []any {
		return scripts.BoardRemoveArgs{User: userID, Segments: segments}.List()
	})
}

// addUserBoard remembers that a board may have an entry of a player.
func (s *store) addUserBoard(ctx context.Context, userID int64, key string) error {
	return redisdb.WrapError("list a player's leaderboard", s.db.Client.SAdd(ctx, keys.UserBoards(userID), key).Err())
}

// userBoards returns the boards that may have an entry of a player.
func (s *store) userBoards(ctx context.Context, userID int64) ([]string, error) {
	list, err := s.db.Client.SMembers(ctx, keys.UserBoards(userID)).Result()
	return list, redisdb.WrapError("list a player's leaderboards", err)
}

func (s *store) dropUserBoards(ctx context.Context, userID int64) error {
	return redisdb.WrapError("forget a player's leaderboards", s.db.Client.Del(ctx, keys.UserBoards(userID)).Err())
}
