package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/money/moneyhalt"
	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// StopReason is why money does not move, or why some of it may be missing. An operator can accept
// it; this one is not accepted yet.
type StopReason struct {
	GameID int64     `json:"gameId,omitzero"` // 0 for all games
	Cause  string    `json:"cause"`           // of package history or moneyhalt, or one of those below
	Reason string    `json:"reason"`          // a sentence for operators
	At     time.Time `json:"at"`              // UTC, when a node noticed
}

// The causes beside those of packages history and moneyhalt.
const (
	LossCause           = "loss"            // nodes noticed a loss; money goes on unless something else stops it
	NoInstallationCause = "no_installation" // the store is empty, or not that of the nodes
	LayoutCause         = "layout"          // the store has keys of another layout
)

// readStopped returns the stop reasons of a game, or of every game if gameID is 0. Those of the
// history come first, then losses, then stopped games.
func readStopped(ctx context.Context, db *redisdb.DB, gameID int64) ([]StopReason, error) {
	status, err := history.ReadStatus(ctx, db)
	if err != nil {
		return nil, err
	}
	games, err := moneyhalt.ReadAll(ctx, db)
	if err != nil {
		return nil, err
	}
	list := []StopReason{}
	if s := status.Halt; s != nil {
		list = append(list, StopReason{Cause: string(s.Cause), Reason: s.Sentence(), At: s.At.UTC()})
	}
	for _, l := range status.NotAccepted() {
		list = append(list, StopReason{
			GameID: l.GameID, Cause: LossCause, At: l.At,
			Reason: "the store lost " + l.Sentence() + "; an operator can accept it with: parlor store accept",
		})
	}
	for _, s := range games {
		reason := s.Detail
		if s.Cause == conservationCause {
			reason += fmt.Sprintf("; look with parlor audit --deep; an operator can accept it with: "+
				"POST /api/v1/admin/games/%d/accept-audit", s.GameID)
		}
		list = append(list, StopReason{GameID: s.GameID, Cause: s.Cause, Reason: reason, At: s.At})
	}
	return slices.DeleteFunc(list, func(s StopReason) bool {
		return gameID != 0 && s.GameID != 0 && s.GameID != gameID
	}), nil
}

// UnreadableReport returns the report on a store that this build must not read, except for its
// installation record. The report is never balanced.
func UnreadableReport(found redisdb.Installation) Report {
	cause := NoInstallationCause
	if found.HasOtherLayout() {
		cause = LayoutCause
	}
	now := time.Now().UTC()
	return Report{
		Tokens: []TokenTotal{}, CheckedAt: now,
		Stopped: []StopReason{{Cause: cause, Reason: found.Problem(), At: now}},
	}
}

// IsUnreadable reports whether nothing was audited: see UnreadableReport.
func (r *Report) IsUnreadable() bool {
	return slices.ContainsFunc(r.Stopped, func(s StopReason) bool {
		return s.Cause == NoInstallationCause || s.Cause == LayoutCause
	})
}

// HasOnlyLosses reports whether all that nodes noticed are losses, which stop no money.
func (r *Report) HasOnlyLosses() bool {
	return !slices.ContainsFunc(r.Stopped, func(s StopReason) bool { return s.Cause != LossCause })
}
