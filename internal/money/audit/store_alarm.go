package audit

import (
	"context"
	"slices"
	"strings"

	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// readLastUserID returns the last user id that was given, 0 before the first.
func (s store) readLastUserID(ctx context.Context) (int64, error) {
	return redisdb.OptionalInt(s.db.Client.Get(ctx, keys.UserIDCounter()))
}

// knownDefects are the fields of keys.AuditDefects, in minor units.
type knownDefects map[string]wallet.Units

func (k knownDefects) isAccepted(d moneyDefect) bool {
	units, ok := k[keys.DefectAccepted+d.field()]
	return ok && units == d.units
}

func (s store) readDefects(ctx context.Context, gameID int64) (knownDefects, error) {
	fields, err := s.db.Client.HGetAll(ctx, keys.AuditDefects(gameID)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read what the audit found", err)
	}
	known, v := knownDefects{}, redisdb.NewFields("what the audit found", fields)
	for field := range fields {
		known[field] = wallet.Units(v.Int(field))
	}
	return known, v.Err()
}

// saveFoundDefects stores what the audit found, so that an operator can accept it on any node.
func (s store) saveFoundDefects(ctx context.Context, gameID int64, defects []moneyDefect) error {
	pairs := make([]any, 0, 2*len(defects))
	for _, d := range defects {
		pairs = append(pairs, keys.DefectFound+d.field(), d.units.String())
	}
	return redisdb.WrapError("store what the audit found",
		s.db.Client.HSet(ctx, keys.AuditDefects(gameID), pairs...).Err())
}

// acceptDefects accepts everything that the audit has found in a game, and returns what is new.
func (s store) acceptDefects(ctx context.Context, gameID int64) ([]AcceptedDefect, error) {
	known, err := s.readDefects(ctx, gameID)
	if err != nil {
		return nil, err
	}
	accepted, pairs := []AcceptedDefect{}, []any{}
	for field, units := range known {
		name, isFound := strings.CutPrefix(field, keys.DefectFound)
		account, code, _ := strings.Cut(name, ":")
		if d := (moneyDefect{account, code, units}); isFound && !known.isAccepted(d) {
			accepted = append(accepted, AcceptedDefect{Account: account, TokenCode: code, Units: units})
			pairs = append(pairs, keys.DefectAccepted+name, units.String())
		}
	}
	slices.SortFunc(accepted, func(a, b AcceptedDefect) int {
		return strings.Compare(a.Account+":"+a.TokenCode, b.Account+":"+b.TokenCode)
	})
	if len(pairs) == 0 {
		return accepted, nil
	}
	err = s.db.Client.HSet(ctx, keys.AuditDefects(gameID), pairs...).Err()
	return accepted, redisdb.WrapError("accept what the audit found", err)
}
