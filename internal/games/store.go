package games

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

type store struct{ db *redisdb.DB }

// errStale: somebody changed the game since it was read.
var errStale = errors.New("the game was changed meanwhile")

// document is the definition of a game as it is stored; settings that are absent have their defaults.
type document struct {
	Name         string        `json:"name"`
	Origins      []string      `json:"origins"`
	WelcomeGrant *Grant        `json:"welcomeGrant,omitempty"`
	Settings     SettingsPatch `json:"settings"`
}

const keyField = "key:"

func (s *store) nextID(ctx context.Context) (int64, error) {
	id, err := s.db.Client.Incr(ctx, keys.GameNext()).Result()
	return id, redisdb.WrapError("number a game", err)
}

func (s *store) lastID(ctx context.Context) (int64, error) {
	id, err := s.db.Client.Get(ctx, keys.GameNext()).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return id, redisdb.WrapError("read the number of games", err)
}

func (s *store) create(ctx context.Context, g Game, digest string) error {
	doc, err := encode(g)
	if err != nil {
		return err
	}
	word, _, err := s.db.Run(ctx, scripts.GameCreate, []string{keys.Game(g.ID)}, doc, digest)
	return answered(scripts.GameCreate, word, err)
}

// patch writes a game over the version that g says it was read at.
func (s *store) patch(ctx context.Context, g Game) error {
	doc, err := encode(g)
	if err != nil {
		return err
	}
	word, _, err := s.db.Run(ctx, scripts.GamePatch, []string{keys.Game(g.ID)}, doc, g.Version, nonce())
	return answered(scripts.GamePatch, word, err)
}

func (s *store) rekey(ctx context.Context, id int64, added, dropped string) error {
	word, _, err := s.db.Run(ctx, scripts.GameUpdateKeys, []string{keys.Game(id)}, added, dropped)
	return answered(scripts.GameUpdateKeys, word, err)
}

// claim answers the game that holds the issuer after the call.
func (s *store) claim(ctx context.Context, field string, game, former int64) (int64, error) {
	word, rest, err := s.db.Run(ctx, scripts.GameClaimAudience, []string{keys.Issuers()}, field, game, former)
	if err != nil {
		return 0, err
	}
	if word == "ok" {
		return game, nil
	}
	return strconv.ParseInt(rest[0], 10, 64)
}

func (s *store) issuerOf(ctx context.Context, field string) (int64, error) {
	id, err := s.db.Client.HGet(ctx, keys.Issuers(), field).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return id, redisdb.WrapError("look up an issuer", err)
}

func (s *store) load(ctx context.Context, id int64) (Game, error) {
	fields, err := s.db.Client.HGetAll(ctx, keys.Game(id)).Result()
	if err != nil {
		return Game{}, redisdb.WrapError("read a game", err)
	}
	if len(fields) == 0 {
		return Game{}, apierror.GameNotFound
	}
	return decode(id, fields)
}

func (s *store) loadRange(ctx context.Context, from, to int64) ([]Game, error) {
	replies := make([]*redis.MapStringStringCmd, 0, to-from+1)
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for id := from; id <= to; id++ {
			replies = append(replies, p.HGetAll(ctx, keys.Game(id)))
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read games", err)
	}
	var games []Game
	for i, reply := range replies {
		if len(reply.Val()) == 0 {
			continue
		}
		g, err := decode(from+int64(i), reply.Val())
		if err != nil {
			return nil, err
		}
		games = append(games, g)
	}
	return games, nil
}

func encode(g Game) (string, error) {
	doc, err := json.Marshal(document{Name: g.Name, Origins: g.Origins, WelcomeGrant: g.WelcomeGrant, Settings: g.Settings.AsPatch()})
	if err != nil {
		return "", fmt.Errorf("encode game %d: %w", g.ID, err)
	}
	return string(doc), nil
}

func decode(id int64, fields map[string]string) (Game, error) {
	var doc document
	if err := json.Unmarshal([]byte(fields["doc"]), &doc); err != nil {
		return Game{}, fmt.Errorf("decode game %d: %w", id, err)
	}
	g := Game{ID: id, Name: doc.Name, Origins: doc.Origins, WelcomeGrant: doc.WelcomeGrant}
	// What was stored was checked when it came in; rules that became stricter since do not break a game.
	g.Settings = DefaultSettings().apply(&checked{}, doc.Settings, Options{LoopbackIssuers: true})
	g.CreatedAt = at(fields["created"])
	g.Version, _ = strconv.ParseInt(fields["ver"], 10, 64)
	for field, created := range fields {
		if digest, ok := strings.CutPrefix(field, keyField); ok {
			g.keys = append(g.keys, storedKey{digest, at(created)})
		}
	}
	slices.SortFunc(g.keys, func(a, b storedKey) int {
		if order := a.created.Compare(b.created); order != 0 {
			return order
		}
		return strings.Compare(a.digest, b.digest)
	})
	return g, nil
}

func at(text string) time.Time {
	ms, _ := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms).UTC()
}

// nonce marks one logical call, so that a script knows a resend of it.
func nonce() int64 { return rand.Int64N(1 << 48) }

func answered(s *scripts.Script, word string, err error) error {
	switch {
	case err != nil:
		return err
	case word == "ok":
		return nil
	case word == "stale":
		return errStale
	default:
		return redisdb.StatusError(s, word)
	}
}
