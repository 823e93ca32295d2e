package history

import (
	"context"
	"fmt"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/wire"
)

// Status is what the store says of its history.
type Status struct {
	Installation string   `json:"installation"` // "" for an empty store
	Epoch        int64    `json:"epoch"`
	Accepted     int64    `json:"acceptedEpoch"` // last epoch that an operator accepted, 0 for none
	Former       []string `json:"formerInstallations"`
	Stop         *Stop    `json:"stopped"` // null while money goes on
	Losses       []Loss   `json:"losses"`  // all that were ever noticed, oldest first
}

// ReadStatus reads what the store says of its history. It returns store_unavailable.
func ReadStatus(ctx context.Context, db *redisdb.DB) (Status, error) {
	s := store{db}
	m, err := s.readMeta(ctx)
	if err != nil {
		return Status{}, err
	}
	return s.status(ctx, m)
}

func (s store) status(ctx context.Context, m meta) (Status, error) {
	status := Status{
		Installation: m.installation, Epoch: m.epoch, Accepted: m.accepted, Former: append([]string{}, m.former...),
	}
	if m.stopped != "" {
		status.Stop = &Stop{}
		if err := wire.Unmarshal([]byte(m.stopped), status.Stop); err != nil {
			return Status{}, fmt.Errorf("decode why money is stopped: %w", err)
		}
	}
	var err error
	status.Losses, err = s.readLosses(ctx)
	return status, err
}

// Accept makes what the store has the history: money goes on, on all nodes within two seconds. No
// balance is changed. It returns the status before and after, and store_unavailable.
func Accept(ctx context.Context, db *redisdb.DB) (before, after Status, err error) {
	s := store{db}
	m, err := s.readMeta(ctx)
	if err != nil {
		return before, after, err
	}
	if before, err = s.status(ctx, m); err != nil {
		return before, after, err
	}
	var stopped Stop
	if before.Stop != nil {
		stopped = *before.Stop
	}
	if _, _, err = s.accept(ctx, m, stopped); err != nil {
		return before, after, err
	}
	after, err = ReadStatus(ctx, db)
	return before, after, err
}
