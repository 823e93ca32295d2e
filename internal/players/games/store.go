package games

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

type store struct{ db *redisdb.DB }

// document is the definition of a game as it is stored; settings that are absent have their
// defaults.
type document struct {
	Name         string        `json:"name"`
	Origins      []string      `json:"origins"`
	WelcomeGrant *SignupGrant  `json:"welcomeGrant,omitzero"`
	Settings     SettingsPatch `json:"settings"`
}

// serverKeyField starts the fields that hold when a server key was made; the rest of the name is
// the key's digest.
const serverKeyField = "key:"

// webhooksField holds the number of the active webhooks of a game; absent for 0.
const webhooksField = "webhooks"

// setActiveWebhooks stores the number of the active webhooks of a game that exists.
func (s *store) setActiveWebhooks(ctx context.Context, id int64, n int) error {
	err := s.db.Client.HSet(ctx, keys.Game(id), webhooksField, n).Err()
	return redisdb.WrapError("count the webhooks of a game", err)
}

func (s *store) nextID(ctx context.Context) (int64, error) {
	id, err := s.db.Client.Incr(ctx, keys.GameIDCounter()).Result()
	return id, redisdb.WrapError("number a game", err)
}

// skipFirstID makes nextID never return FirstID.
func (s *store) skipFirstID(ctx context.Context) error {
	err := s.db.Client.SetNX(ctx, keys.GameIDCounter(), FirstID, 0).Err()
	return redisdb.WrapError("number the first game", err)
}

func (s *store) lastID(ctx context.Context) (int64, error) {
	id, err := s.db.Client.Get(ctx, keys.GameIDCounter()).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return id, redisdb.WrapError("read the number of games", err)
}

func (s *store) create(ctx context.Context, g Game, keyDigest string) error {
	doc, err := encodeDocument(g)
	if err != nil {
		return err
	}
	return s.runScript(ctx, scripts.GameCreate, g.ID, scripts.GameCreateArgs{Doc: doc, Digest: keyDigest}.List()...)
}

// patch replaces the game of version g.Version. It returns redisdb.ErrStale when the stored version
// is another one.
func (s *store) patch(ctx context.Context, g Game) error {
	doc, err := encodeDocument(g)
	if err != nil {
		return err
	}
	return s.runScript(ctx, scripts.GamePatch, g.ID,
		scripts.GamePatchArgs{Doc: doc, VersionRead: g.Version, Nonce: idempotency.NewNonce()}.List()...)
}

func (s *store) addServerKey(ctx context.Context, id int64, digest string) error {
	return s.runScript(ctx, scripts.GameUpdateKeys, id,
		scripts.GameUpdateKeysArgs{Added: digest, Removed: ""}.List()...)
}

// hasServerKey reports whether a game has the key with a digest. A game that does not exist has
// none.
func (s *store) hasServerKey(ctx context.Context, id int64, digest string) (bool, error) {
	has, err := s.db.Client.HExists(ctx, keys.Game(id), serverKeyField+digest).Result()
	return has, redisdb.WrapError("look up a server key", err)
}

func (s *store) removeServerKey(ctx context.Context, id int64, digest string) error {
	return s.runScript(ctx, scripts.GameUpdateKeys, id,
		scripts.GameUpdateKeysArgs{Added: "", Removed: digest}.List()...)
}

// runScript runs a script that changes one game.
func (s *store) runScript(ctx context.Context, script *scripts.Script, id int64, args ...any) error {
	reply, err := s.db.RunScript(ctx, script, []string{keys.Game(id)}, args...)
	if err != nil {
		return err
	}
	return reply.Err(script)
}

// claimIssuer gives an entry of the index to a game unless another game than formerOwner has it,
// and returns the game that has it.
func (s *store) claimIssuer(ctx context.Context, field string, game, formerOwner int64) (int64, error) {
	reply, err := s.db.RunScript(ctx, scripts.GameClaimAudience, []string{keys.Issuers()},
		scripts.GameClaimAudienceArgs{Field: field, Game: game, Former: formerOwner}.List()...)
	if err != nil {
		return 0, err
	}
	if reply.Status != scripts.Stale {
		return game, reply.Err(scripts.GameClaimAudience)
	}
	values := redisdb.NewValues("the owner of an issuer", reply.Values)
	owner := values.NextInt()
	return owner, values.Err()
}

// countPlayer counts a new player of a game that may have a number of them in a day. It returns
// limit_reached.
func (s *store) countPlayer(ctx context.Context, id, most int64) error {
	reply, err := s.db.RunScript(ctx, scripts.GameCountPlayer, []string{keys.NewPlayers(id)},
		scripts.GameCountPlayerArgs{Most: most}.List()...)
	if err != nil {
		return err
	}
	return reply.Err(scripts.GameCountPlayer)
}

// readUse returns how much a game has of each kind in QuotaTable.
func (s *store) readUse(ctx context.Context, id int64) (Use, error) {
	now, err := s.db.ReadClock(ctx)
	if err != nil {
		return nil, err
	}
	var boards, ofTours, tours, assets *redis.IntCmd
	var players, bytes *redis.StringCmd
	_, err = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		boards, ofTours = p.SCard(ctx, keys.Boards(id)), p.SCard(ctx, keys.TournamentBoards(id))
		tours = p.ZCard(ctx, keys.ToursDue(id))
		assets, players = p.ZCard(ctx, keys.Assets(id)), p.Get(ctx, keys.NewPlayers(id))
		bytes = p.HGet(ctx, keys.GameBytes(), strconv.FormatInt(id, 10))
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: no player, or nothing was measured
		return nil, redisdb.WrapError("read the use of a game", err)
	}
	use := Use{
		QuotaBoards: boards.Val() - ofTours.Val(), QuotaTours: tours.Val(), QuotaAssets: assets.Val(), QuotaNewPlayers: 0,
	}
	day, count, _ := strings.Cut(players.Val(), "|")
	if day == strconv.FormatInt(now.Unix()/secondsPerDay, 10) {
		use[QuotaNewPlayers], err = strconv.ParseInt(count, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("decode the new players of game %d: %w", id, err)
		}
	}
	use[QuotaBytes], _ = strconv.ParseInt(bytes.Val(), 10, 64) // "" before the first estimate
	return use, nil
}

const secondsPerDay = 24 * 60 * 60

// issuerOwner returns the game of an entry of the index, or 0.
func (s *store) issuerOwner(ctx context.Context, field string) (int64, error) {
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
	return decodeGame(id, fields)
}

func (s *store) loadRange(ctx context.Context, from, to int64) ([]Game, error) {
	replies := make([]*redis.MapStringStringCmd, 0, to-from+1)
	_, _ = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for id := from; id <= to; id++ {
			replies = append(replies, p.HGetAll(ctx, keys.Game(id)))
		}
		return nil
	})
	var games []Game
	for i, reply := range replies {
		switch err := redisdb.WrapError("read a game", reply.Err()); {
		case redisdb.IsWrongType(err): // the others are listed
			slog.ErrorContext(ctx, "a game cannot be read", "game", from+int64(i), "error", err)
		case err != nil:
			return nil, err
		}
		if len(reply.Val()) == 0 {
			continue
		}
		g, err := decodeGame(from+int64(i), reply.Val())
		if err != nil {
			return nil, err
		}
		games = append(games, g)
	}
	return games, nil
}

func encodeDocument(g Game) (string, error) {
	doc, err := wire.Marshal(document{
		Name: g.Name, Origins: g.Origins, WelcomeGrant: g.SignupGrant, Settings: g.Settings.AsPatch(),
	})
	if err != nil {
		return "", fmt.Errorf("encode game %d: %w", g.ID, err)
	}
	return string(doc), nil
}

// decodeGame does not check the definition: rules that became stricter since it was stored must not
// break a game.
func decodeGame(id int64, hash map[string]string) (Game, error) {
	f := redisdb.NewFields("a game", hash)
	var doc document
	if err := wire.Unmarshal([]byte(f.Text("doc")), &doc); err != nil {
		return Game{}, fmt.Errorf("decode game %d: %w", id, err)
	}
	if doc.Settings.Settlements == nil {
		doc.Settings.Settlements = new(settlementsBefore())
	}
	g := Game{
		ID:          id,
		Name:        doc.Name,
		Origins:     doc.Origins,
		SignupGrant: doc.WelcomeGrant,
		Settings:    DefaultSettings().merge(doc.Settings),
		CreatedAt:   f.Time("created"),
		Version:     f.Int("ver"),
	}
	if f.Has(webhooksField) {
		g.ActiveWebhooks = int(f.Int(webhooksField))
	}
	for field := range hash {
		if digest, ok := strings.CutPrefix(field, serverKeyField); ok {
			g.serverKeys = append(g.serverKeys, storedKey{digest, f.Time(field)})
		}
	}
	slices.SortFunc(g.serverKeys, func(a, b storedKey) int {
		return cmp.Or(a.createdAt.Compare(b.createdAt), strings.Compare(a.digest, b.digest))
	})
	return g, f.Err()
}
