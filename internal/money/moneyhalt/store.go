package moneyhalt

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Read reads the halts once.
func (s *Service) Read(ctx context.Context) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.read(ctx)
}

// readOnce reads the halts unless they have been read meanwhile.
func (s *Service) readOnce(ctx context.Context) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.halts.Load() != nil {
		return nil
	}
	return s.read(ctx)
}

// read reads the halts. Service.reading must be held.
func (s *Service) read(ctx context.Context) error {
	list, err := ReadAll(ctx, s.db)
	if err != nil {
		return err
	}
	s.halts.Store(&list)
	return nil
}

// ReadAll returns the halts by game, as the store has them. It returns store_unavailable.
func ReadAll(ctx context.Context, db *redisdb.DB) ([]Halt, error) {
	fields, err := db.Client.HGetAll(ctx, keys.MoneyHalts()).Result()
	if err != nil {
		return nil, redisdb.WrapError("read the stopped games", err)
	}
	list := make([]Halt, 0, len(fields))
	for field, text := range fields {
		game, cause, _ := strings.Cut(field, ":")
		at, detail, _ := strings.Cut(text, "|")
		v := redisdb.NewValues("the halt "+field, []string{game, at})
		halt := Halt{GameID: v.NextInt(), At: v.NextTime(), Cause: cause, Detail: detail}
		if v.Err() != nil {
			return nil, v.Err()
		}
		list = append(list, halt)
	}
	slices.SortFunc(list, func(a, b Halt) int {
		return cmp.Or(cmp.Compare(a.GameID, b.GameID), cmp.Compare(a.Cause, b.Cause))
	})
	return list, nil
}

// Add halts the money of a game. The first halt of a cause counts, and is logged once.
func (s *Service) Add(ctx context.Context, gameID int64, cause, detail string) error {
	now, err := s.db.ReadClock(ctx)
	if err != nil {
		return err
	}
	value := strconv.FormatInt(now.UnixMilli(), 10) + "|" + detail
	isNew, err := s.db.Client.HSetNX(ctx, keys.MoneyHalts(), fieldOf(gameID, cause), value).Result()
	if err != nil {
		return redisdb.WrapError("stop the money of a game", err)
	}
	if isNew {
		s.log.ErrorContext(ctx, "the money of a game is stopped until an operator has looked at it",
			"game", gameID, "cause", cause, "detail", detail)
	}
	return s.Read(ctx)
}

// Lift ends a halt of a game. Without one it changes nothing.
func (s *Service) Lift(ctx context.Context, gameID int64, cause string) error {
	if err := s.db.Client.HDel(ctx, keys.MoneyHalts(), fieldOf(gameID, cause)).Err(); err != nil {
		return redisdb.WrapError("lift the stop of a game", err)
	}
	return s.Read(ctx)
}

func fieldOf(gameID int64, cause string) string { return strconv.FormatInt(gameID, 10) + ":" + cause }
