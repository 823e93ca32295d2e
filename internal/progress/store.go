package progress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/wire"
	"github.com/parlor-games/parlor/scripts"
)

type store struct{ db *redisdb.DB }

// EventTopic returns the key of the stream with a player's user.progress events. The channel of the
// same name announces them.
func (s *Service) EventTopic(user int64) string { return keys.UserEvents(user) }

// snapshot is what one read of a slot returned.
type snapshot struct {
	newest record // version 0: the slot is empty
	other  record // version 0: the slot does not keep the requested version
	nowMS  int64  // Unix time in ms, by the clock of Redis
}

// read returns the newest version of a slot, and the version other unless that is 0. The newest
// version comes with its state only if withState is set.
func (s store) read(ctx context.Context, id slotID, withState bool, other int64) (snapshot, error) {
	stateFlag, otherText := "0", ""
	if withState {
		stateFlag = "1"
	}
	if other > 0 {
		otherText = strconv.FormatInt(other, 10)
	}
	reply, err := s.db.RunScript(
		ctx,
		scripts.SaveRead,
		[]string{keys.Save(id.user, id.game, id.name)},
		stateFlag,
		otherText,
	)
	if err == nil {
		err = reply.Err(scripts.SaveRead)
	}
	if err != nil {
		return snapshot{}, err
	}
	values := redisdb.NewValues("the slot "+id.name, reply.Values)
	read := snapshot{nowMS: values.Int()}
	read.newest = parseRecord(values.Int(), values.Text(), values.Text())
	if mark, state := values.Text(), values.Text(); mark != "" {
		read.other = parseRecord(other, mark, state)
	}
	return read, values.Err()
}

// notChecked is the checked version of a write whose base is not the newest version: it can only be
// a repetition or a conflict, so the rules were not checked.
const notChecked = -1

// versionWrite is a record that is to become the newest version of a slot.
type versionWrite struct {
	base    int64 // the newest version, as the sender last read it
	checked int64 // the version that the rules compared with, or notChecked
	next    record
	event   []byte // data of user.progress, as JSON
}

// errStale is returned when the newest version is not the one that the rules compared with.
var errStale = errors.New("the slot has a newer version than was read")

// write stores a version and returns it, or the one that the same message made before. It returns
// errStale, version_conflict or slots_full.
func (s store) write(ctx context.Context, id slotID, w versionWrite) (record, error) {
	summary := fmt.Sprintf("%d %d %d", w.next.version, w.next.savedAtMS, w.next.size)
	slotKeys := []string{
		keys.Save(id.user, id.game, id.name), keys.Saves(id.user, id.game), keys.Progress(id.user), keys.UserEvents(id.user),
	}
	reply, err := s.db.RunScript(ctx, scripts.SaveWrite, slotKeys,
		s.db.PublishCommand, idempotency.NewNonce(), w.base, w.checked, w.next.version, w.next.message,
		w.next.mark(), []byte(w.next.state), id.name, summary, MaxSlots, MaxVersions, w.event)
	if err != nil {
		return record{}, err
	}
	switch reply.Status {
	case scripts.OK:
		return w.next, nil
	case scripts.Stale:
		return record{}, errStale
	case scripts.Replay:
		values := redisdb.NewValues("the slot "+id.name, reply.Values)
		earlier := parseRecord(values.Int(), values.Text(), "")
		return earlier, values.Err()
	case apierror.SlotsFull.Code:
		return record{}, apierror.SlotsFull.WithReason("a player has at most %d slots in a game", MaxSlots)
	default:
		return record{}, reply.Err(scripts.SaveWrite)
	}
}

// history returns the kept versions, newest first.
func (s store) history(ctx context.Context, id slotID) ([]record, error) {
	fields, err := s.db.Client.HGetAll(ctx, keys.Save(id.user, id.game, id.name)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read the history of a save", err)
	}
	var records []record
	for field, mark := range fields {
		version, ok := keys.ParseSaveMarkField(field)
		if ok {
			records = append(records, parseRecord(version, mark, fields[keys.SaveStateField(version)]))
		}
	}
	slices.SortFunc(records, func(a, b record) int { return int(b.version - a.version) })
	return records, nil
}

// list returns the newest version of every slot, ordered by name.
func (s store) list(ctx context.Context, user, game int64) ([]Saved, error) {
	summaries, err := s.db.Client.HGetAll(ctx, keys.Saves(user, game)).Result()
	if err != nil {
		return nil, redisdb.WrapError("list saves", err)
	}
	slots := make([]Saved, 0, len(summaries))
	for slot, summary := range summaries {
		saved := Saved{Slot: slot}
		var savedAtMS int64
		if _, err := fmt.Sscan(summary, &saved.Version, &savedAtMS, &saved.Size); err != nil {
			return nil, fmt.Errorf("decode the slot %s: %w", slot, err)
		}
		saved.SavedAt = time.UnixMilli(savedAtMS).UTC()
		slots = append(slots, saved)
	}
	slices.SortFunc(slots, func(a, b Saved) int { return strings.Compare(a.Slot, b.Slot) })
	return slots, nil
}

// mark returns what is stored beside the state. The rates come last, since a path in them may
// contain spaces.
func (r record) mark() string {
	return strings.Join([]string{
		r.message, strconv.FormatInt(r.savedAtMS, 10), strconv.Itoa(r.size), r.keyID, r.signature, r.rates,
	}, " ")
}

// parseRecord decodes what mark returned. An altered mark gives a record whose signature is
// invalid.
func parseRecord(version int64, mark, state string) record {
	r := record{version: version, state: wire.RawJSON(state)}
	parts := strings.SplitN(mark, " ", 6)
	if len(parts) < 6 {
		return r
	}
	r.savedAtMS, _ = strconv.ParseInt(parts[1], 10, 64)
	r.size, _ = strconv.Atoi(parts[2])
	r.message, r.keyID, r.signature, r.rates = parts[0], parts[3], parts[4], parts[5]
	return r
}
