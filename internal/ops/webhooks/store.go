package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/feed"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

type store struct{ db *redisdb.DB }

// stored is the text of a definition, by which it is replaced, and what it says.
type stored struct {
	text string
	definition
}

// readDefinitions returns the webhooks of some games, by their ids.
func (s store) readDefinitions(ctx context.Context, gameIDs []int64) (map[int64]map[string]stored, error) {
	names := make([]string, len(gameIDs))
	for i, id := range gameIDs {
		names[i] = keys.Webhooks(id)
	}
	games := make(map[int64]map[string]stored, len(gameIDs))
	for i, read := range s.db.ReadHashes(ctx, names) {
		if read.Err != nil {
			return nil, read.Err
		}
		webhooks := map[string]stored{}
		for id, text := range read.Fields.All {
			d := stored{text: text}
			if err := wire.Unmarshal([]byte(text), &d.definition); err != nil {
				return nil, fmt.Errorf("decode the webhook %s of game %d: %w", id, gameIDs[i], err)
			}
			webhooks[id] = d
		}
		games[gameIDs[i]] = webhooks
	}
	return games, nil
}

// define replaces the definition was by another text; "" stands for none. It returns
// redisdb.ErrStale and limit_reached.
func (s store) define(ctx context.Context, gameID int64, webhookID, was, text string) error {
	args := scripts.WebhookDefineArgs{WebhookID: webhookID, Was: was, Definition: text, Most: MaxWebhooks}
	return s.run(ctx, scripts.WebhookDefine, []string{keys.Webhooks(gameID)}, args.List()...)
}

func (s store) run(ctx context.Context, script *scripts.Script, names []string, args ...any) error {
	reply, err := s.db.RunScript(ctx, script, names, args...)
	if err != nil {
		return err
	}
	if reply.IsFromReplacedLeader() {
		return errReplaced
	}
	return reply.Err(script)
}

// errReplaced means that another node delivers now.
var errReplaced = errors.New("another node delivers webhooks now")

// addGame names a game that has, or gets, an active webhook.
func (s store) addGame(ctx context.Context, gameID int64) error {
	return redisdb.WrapError("name a game with webhooks", s.db.Client.SAdd(ctx, keys.WebhookGames(), gameID).Err())
}

func (s store) removeGame(ctx context.Context, gameID int64) error {
	return redisdb.WrapError("name no game with webhooks", s.db.Client.SRem(ctx, keys.WebhookGames(), gameID).Err())
}

func (s store) listGames(ctx context.Context) ([]int64, error) {
	members, err := s.db.Client.SMembers(ctx, keys.WebhookGames()).Result()
	if err != nil {
		return nil, redisdb.WrapError("list the games with webhooks", err)
	}
	v := redisdb.NewValues("the games with webhooks", members)
	var games []int64
	for v.Remaining() > 0 {
		games = append(games, v.NextInt())
	}
	slices.Sort(games)
	return games, v.Err()
}

// place is where a room that has failed goes on.
type place struct {
	feed, after string // its first undelivered event follows this position
	tries       int    // of that event, which failed
	since       time.Time
	due         time.Time // of the next try
}

// state is keys.WebhookState.
type state struct {
	round     string
	positions map[string]string // by feed
	behind    map[string]place  // by room
	failing   time.Time         // zero: the last attempt succeeded
	oldest    time.Time         // zero: nothing waits
	revived   time.Time         // when staff made the webhook active again
	lastError string
	parked    int64
}

// The fields of a state that are no position and no room.
const (
	fieldRound   = "round"
	fieldFailing = "failing"
	fieldError   = "error"
	fieldOldest  = "oldest"
	fieldParked  = "parked"
	fieldRevived = "revived"
)

const placeParts = 5

func (p place) String() string {
	return fmt.Sprintf("%s|%s|%d|%d|%d", p.feed, p.after, p.tries, p.since.UnixMilli(), p.due.UnixMilli())
}

func parsePlace(text string) (place, error) {
	parts := strings.Split(text, "|")
	if len(parts) != placeParts {
		return place{}, fmt.Errorf("decode where a room of a webhook goes on: %q", text)
	}
	v := redisdb.NewValues("where a room of a webhook goes on", parts)
	p := place{feed: v.NextText(), after: v.NextText(), tries: int(v.NextInt()), since: v.NextTime(), due: v.NextTime()}
	return p, v.Err()
}

func decodeState(hash redisdb.Hash) (state, error) {
	f := redisdb.NewFieldsOfHash("the state of a webhook", hash)
	s := state{
		round: f.Text(fieldRound), positions: map[string]string{}, behind: map[string]place{},
		revived: f.Time(fieldRevived), failing: f.Time(fieldFailing), oldest: f.Time(fieldOldest),
		lastError: f.Text(fieldError), parked: f.Int(fieldParked),
	}
	for field, value := range hash.All {
		switch feedName, room := keys.ParseWebhookField(field); {
		case feedName != "":
			s.positions[feedName] = value
		case room != "":
			p, err := parsePlace(value)
			if err != nil {
				return state{}, err
			}
			s.behind[room] = p
		}
	}
	return s, f.Err()
}

// readStates returns the states of webhooks of a game, in their order.
func (s store) readStates(ctx context.Context, gameID int64, webhookIDs []string) ([]state, error) {
	names := make([]string, len(webhookIDs))
	for i, id := range webhookIDs {
		names[i] = keys.WebhookState(gameID, id)
	}
	states := make([]state, len(names))
	for i, read := range s.db.ReadHashes(ctx, names) {
		if read.Err != nil {
			return nil, read.Err
		}
		var err error
		if states[i], err = decodeState(read.Fields); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// readRounds returns the rounds of webhooks, in their order.
func (s store) readRounds(ctx context.Context, webhooks []targetKey) ([]string, error) {
	reads := make([]*redis.StringCmd, len(webhooks))
	_, _ = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for i, key := range webhooks {
			reads[i] = p.HGet(ctx, keys.WebhookState(key.gameID, key.id), fieldRound)
		}
		return nil
	})
	rounds := make([]string, len(webhooks))
	for i, read := range reads {
		var err error
		if rounds[i], err = read.Result(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, redisdb.WrapError("read the round of a webhook", err)
		}
	}
	return rounds, nil
}

// rewind puts positions elsewhere, by feed.
func (s store) rewind(ctx context.Context, gameID int64, webhookID string, positions map[string]string) error {
	var fields []any
	for name, position := range positions {
		fields = append(fields, keys.WebhookPosition(name), position)
	}
	return s.alter(ctx, gameID, webhookID, fields...)
}

// revive notes that a webhook is active again: its failures of before do not count.
func (s store) revive(ctx context.Context, gameID int64, webhookID string, now time.Time) error {
	return s.alter(ctx, gameID, webhookID, fieldRevived, now.UnixMilli(), fieldFailing, "", fieldError, "")
}

func (s store) alter(ctx context.Context, gameID int64, webhookID string, fields ...any) error {
	return s.run(ctx, scripts.WebhookRewind, []string{keys.WebhookState(gameID, webhookID)},
		scripts.WebhookRewindArgs{Round: idempotency.NewNonce()}.List(fields...)...)
}

// unpark makes a webhook send again what was parked.
func (s store) unpark(ctx context.Context, gameID int64, webhookID string) error {
	names := []string{
		keys.WebhookState(gameID, webhookID), keys.WebhookParked(gameID, webhookID), keys.WebhookAgain(gameID, webhookID),
	}
	return s.run(ctx, scripts.WebhookUnpark, names, scripts.WebhookUnparkArgs{Round: idempotency.NewNonce()}.List()...)
}

// progress is what a leader stores of a webhook.
type progress struct {
	fence    int64
	round    string // of the state that the leader read
	attempts []Attempt
	parked   []parkedEvent
	fields   map[string]string // of the state; "" for one that goes

	positions map[string]string // by feed
	places    map[string]*place // by room; nil for one that is not behind any more
}

// parkedEvent is an event that was given up, with what it takes to send it again.
type parkedEvent struct {
	Attempt
	Body wire.RawJSON `json:"body"`
}

// commit stores progress. It returns errReplaced, and redisdb.ErrStale when staff has put positions
// elsewhere.
func (s store) commit(ctx context.Context, gameID int64, webhookID string, p progress) error {
	rest := make([]any, 0, len(p.attempts)+len(p.parked)+2*(len(p.fields)+len(p.positions)+len(p.places)))
	for i := range p.attempts {
		text, err := wire.Marshal(&p.attempts[i])
		if err != nil {
			return fmt.Errorf("encode an attempt: %w", err)
		}
		rest = append(rest, text)
	}
	for i := range p.parked {
		text, err := wire.Marshal(&p.parked[i])
		if err != nil {
			return fmt.Errorf("encode a parked event: %w", err)
		}
		rest = append(rest, text)
	}
	for field, value := range p.fields {
		rest = append(rest, field, value)
	}
	for name, position := range p.positions {
		rest = append(rest, keys.WebhookPosition(name), position)
	}
	for room, at := range p.places {
		value := ""
		if at != nil {
			value = at.String()
		}
		rest = append(rest, keys.WebhookBehind(room), value)
	}
	names := []string{
		keys.WebhookState(gameID, webhookID), keys.WebhookAttempts(gameID, webhookID), keys.WebhookParked(gameID, webhookID),
	}
	return s.run(ctx, scripts.WebhookCommit, names, scripts.WebhookCommitArgs{
		Nonce: idempotency.NewNonce(), Fence: p.fence, Round: p.round,
		MostAttempts: maxAttemptsKept, MostParked: maxParkedKept,
		AttemptsCount: len(p.attempts), ParkedCount: len(p.parked),
	}.List(rest...)...)
}

// addAttempt stores an attempt of staff.
func (s store) addAttempt(ctx context.Context, gameID int64, webhookID string, a Attempt) error {
	text, err := wire.Marshal(&a)
	if err != nil {
		return fmt.Errorf("encode an attempt: %w", err)
	}
	list := keys.WebhookAttempts(gameID, webhookID)
	_, err = s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.LPush(ctx, list, text)
		p.LTrim(ctx, list, 0, maxAttemptsKept-1)
		return nil
	})
	return redisdb.WrapError("store an attempt", err)
}

func (s store) readAttempts(ctx context.Context, gameID int64, webhookID string) ([]Attempt, error) {
	return readList[Attempt](ctx, s, keys.WebhookAttempts(gameID, webhookID), 0)
}

func (s store) readParked(ctx context.Context, gameID int64, webhookID string) ([]parkedEvent, error) {
	return readList[parkedEvent](ctx, s, keys.WebhookParked(gameID, webhookID), 0)
}

// readAgain returns what is to be sent again and follows the first done events.
func (s store) readAgain(ctx context.Context, gameID int64, webhookID string, done int64) ([]parkedEvent, error) {
	return readList[parkedEvent](ctx, s, keys.WebhookAgain(gameID, webhookID), done)
}

func readList[T any](ctx context.Context, s store, list string, from int64) ([]T, error) {
	texts, err := s.db.Client.LRange(ctx, list, from, -1).Result()
	if err != nil {
		return nil, redisdb.WrapError("read a list of a webhook", err)
	}
	values := make([]T, len(texts))
	for i, text := range texts {
		if err := wire.Unmarshal([]byte(text), &values[i]); err != nil {
			return nil, fmt.Errorf("decode an entry of %s: %w", list, err)
		}
	}
	return values, nil
}

// remove removes everything that is stored of a webhook but its definition.
func (s store) remove(ctx context.Context, gameID int64, webhookID string) error {
	return redisdb.WrapError("remove the state of a webhook", s.db.Client.Del(ctx,
		keys.WebhookState(gameID, webhookID), keys.WebhookAttempts(gameID, webhookID),
		keys.WebhookParked(gameID, webhookID), keys.WebhookAgain(gameID, webhookID)).Err())
}

// readHeads returns the position of the last entry of each feed of a game, by the feed's name.
func (s store) readHeads(ctx context.Context, gameID int64, shards []keys.Shard) (map[string]string, error) {
	heads, err := feed.ReadHeads(ctx, s.db, gameID, shards)
	if err != nil {
		return nil, err
	}
	positions := make(map[string]string, len(heads))
	for i, head := range heads {
		positions[feed.Name(shards[i])] = head.Position
	}
	return positions, nil
}

// keep notes, for some feeds of a game by their names, the numbers behind which they must keep
// everything.
func (s store) keep(ctx context.Context, gameID int64, shards []keys.Shard, numbers map[string]int64) error {
	for _, shard := range shards {
		if number, ok := numbers[feed.Name(shard)]; ok {
			if err := feed.SetKept(ctx, s.db, shard, gameID, number); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepNothing notes that no webhook waits for anything in the feeds of a game.
func (s store) keepNothing(ctx context.Context, gameID int64, shards []keys.Shard) error {
	for _, shard := range shards {
		if err := feed.ClearKept(ctx, s.db, shard, gameID); err != nil {
			return err
		}
	}
	return nil
}

// numberOf returns the number of a position, 0 for any other text.
func numberOf(position string) int64 {
	text, _, _ := strings.Cut(position, "-")
	number, _ := strconv.ParseInt(text, 10, 64)
	return number
}

// shards returns the shards on which a game has feeds.
func (s *Service) shards(gameID int64) []keys.Shard { return feed.Shards(gameID, s.freeShards) }

// shardOf returns the shard of a feed's name.
func (s *Service) shardOf(gameID int64, name string) (keys.Shard, bool) {
	if name == "e" {
		return keys.EconomyShard(gameID), true
	}
	shard, ok := keys.ParseShard(name)
	return shard, ok && !shard.Paid()
}
