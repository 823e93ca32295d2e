package stops

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Read reads the stops once.
func (s *Service) Read(ctx context.Context) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.read(ctx)
}

// readOnce reads the stops unless they have been read meanwhile.
func (s *Service) readOnce(ctx context.Context) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.stops.Load() != nil {
		return nil
	}
	return s.read(ctx)
}

// read reads the stops. Service.reading must be held.
func (s *Service) read(ctx context.Context) error {
	list, err := ReadAll(ctx, s.db)
	if err != nil {
		return err
	}
	s.stops.Store(&list)
	return nil
}

// ReadAll returns the stops by game, as the store has them. It returns store_unavailable.
func ReadAll(ctx context.Context, db *redisdb.DB) ([]Stop, error) {
	fields, err := db.Client.HGetAll(ctx, keys.MoneyStops()).Result()
	if err != nil {
		return nil, redisdb.WrapError("read the stopped games", err)
	}
	list := make([]Stop, 0, len(fields))
	for field, text := range fields {
		game, cause, _ := strings.Cut(field, ":")
		at, detail, _ := strings.Cut(text, "|")
		v := redisdb.NewValues("the stop "+field, []string{game, at})
		stop := Stop{GameID: v.NextInt(), At: v.NextTime(), Cause: cause, Detail: detail}
		if v.Err() != nil {
			return nil, v.Err()
		}
		list = append(list, stop)
	}
	slices.SortFunc(list, func(a, b Stop) int {
		return cmp.Or(cmp.Compare(a.GameID, b.GameID), cmp.Compare(a.Cause, b.Cause))
	})
	return list, nil
}

// Add stops the money of a game. The first stop of a cause counts, and is logged once.
func (s *Service) Add(ctx context.Context, gameID int64, cause, detail string) error {
	now, err := s.db.ReadClock(ctx)
	if err != nil {
		return err
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
