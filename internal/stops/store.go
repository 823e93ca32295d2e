package stops

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
)

// Read reads the stops once.
func (s *Service) Read(ctx context.Context) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	fields, err := s.db.Client.HGetAll(ctx, keys.MoneyStops()).Result()
	if err != nil {
		return redisdb.WrapError("read the stopped games", err)
	}
	list := make([]Stop, 0, len(fields))
	for field, text := range fields {
		game, cause, _ := strings.Cut(field, ":")
		at, detail, _ := strings.Cut(text, "|")
		v := redisdb.NewValues("the stop "+field, []string{game, at})
		stop := Stop{GameID: v.NextInt(), At: v.NextTime(), Cause: cause, Detail: detail}
		if v.Err() != nil {
			return v.Err()
		}
		list = append(list, stop)
	}
	slices.SortFunc(list, func(a, b Stop) int {
		return cmp.Or(cmp.Compare(a.GameID, b.GameID), cmp.Compare(a.Cause, b.Cause))
	})
	s.stops.Store(&list)
	return nil
}

// Add stops the money of a game. The first stop of a cause counts, and is logged once.
func (s *Service) Add(ctx context.Context, gameID int64, cause, detail string) error {
	now, err := s.db.Client.Time(ctx).Result()
	if err != nil {
		return redisdb.WrapError("read the store's clock", err)
	}
	value := strconv.FormatInt(now.UnixMilli(), 10) + "|" + detail
	isNew, err := s.db.Client.HSetNX(ctx, keys.MoneyStops(), fieldOf(gameID, cause), value).Result()
	if err != nil {
		return redisdb.WrapError("stop the money of a game", err)
	}
	if isNew {
		s.log.ErrorContext(ctx, "the money of a game is stopped until an operator has looked at it",
			"game", gameID, "cause", cause, "detail", detail)
	}
	return s.Read(ctx)
}

// Lift ends a stop of a game. Without one it changes nothing.
func (s *Service) Lift(ctx context.Context, gameID int64, cause string) error {
	if err := s.db.Client.HDel(ctx, keys.MoneyStops(), fieldOf(gameID, cause)).Err(); err != nil {
		return redisdb.WrapError("lift the stop of a game", err)
	}
	return s.Read(ctx)
}

func fieldOf(gameID int64, cause string) string { return strconv.FormatInt(gameID, 10) + ":" + cause }
