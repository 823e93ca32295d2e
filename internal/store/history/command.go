package history

import (
	"context"
	"fmt"
	"slices"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Status is what the store says of its history.
type Status struct {
	Installation string   `json:"installation"` // "" for an empty store
	Epoch        int64    `json:"epoch"`
	Accepted     int64    `json:"acceptedEpoch"` // last epoch that an operator accepted, 0 for none
	Former       []string `json:"formerInstallations"`
	Halt         *Halt    `json:"stopped"` // null while money goes on
	Losses       []Loss   `json:"losses"`  // all that were ever noticed, oldest first
}

// NotAccepted returns the losses that no operator has accepted yet.
func (s Status) NotAccepted() []Loss {
	return slices.DeleteFunc(slices.Clone(s.Losses), func(l Loss) bool { return l.Epoch <= s.Accepted })
}

// Sentence describes a loss for operators.
func (l Loss) Sentence() string {
	where := fmt.Sprintf("%d were there, %d are", l.Known, l.Present)
	switch {
	case l.Acknowledged == nil:
		return fmt.Sprintf("game %d, at least %d ledger entries: %s", l.GameID, l.Entries(), where)
	case *l.Acknowledged == 0:
		return fmt.Sprintf("game %d, %d ledger entries that nobody was told of: %s", l.GameID, l.Entries(), where)
	case l.Entries() == *l.Acknowledged:
		return fmt.Sprintf("game %d, %d acknowledged ledger entries: %s", l.GameID, *l.Acknowledged, where)
	default:
		return fmt.Sprintf("game %d, %d acknowledged ledger entries, and %d that nobody was told of: %s", l.GameID,
			*l.Acknowledged, l.Entries()-*l.Acknowledged, where)
	}
}

// CreateInstallation gives a store without an installation a name and its first epoch, as the first
// node does. It changes nothing in another store. It returns store_unavailable.
func CreateInstallation(ctx context.Context, db *redisdb.DB) error {
	return store{db}.createInstallation(ctx)
}

// ReadStatus reads the store's records of its history, at one instant. It returns
// store_unavailable.
func ReadStatus(ctx context.Context, db *redisdb.DB) (Status, error) {
	status, _, err := store{db}.readStatus(ctx)
	return status, err
}

func (s store) readStatus(ctx context.Context) (Status, meta, error) {
	m, losses, err := s.readMetaAndLosses(ctx)
	if err != nil {
		return Status{}, m, err
	}
	status := Status{
		Installation: m.installation, Epoch: m.epoch, Accepted: m.accepted, Former: append([]string{}, m.former...),
		Losses: losses,
	}
	if m.stopped != "" {
		status.Halt = &Halt{}
		if err := wire.Unmarshal([]byte(m.stopped), status.Halt); err != nil {
			return Status{}, m, fmt.Errorf("decode why money is stopped: %w", err)
		}
	}
	return status, m, nil
}

// Accept declares the present content of the store to be the history. Money moves again on all
// nodes within two seconds. No balance is changed. It returns the status before and after, and
// store_unavailable.
func Accept(ctx context.Context, db *redisdb.DB) (before, after Status, err error) {
	s := store{db}
	before, m, err := s.readStatus(ctx)
	if err != nil {
		return before, after, err
	}
	var stopped Halt
	if before.Halt != nil {
		stopped = *before.Halt
	}
	if _, _, err = s.accept(ctx, m, stopped); err != nil {
		return before, after, err
	}
	after, err = ReadStatus(ctx, db)
	return before, after, err
}
