package progress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

type store struct{ db *redisdb.DB }

// EventTopic returns the key of the list with a player's user.progress events. The channel of the
// same name announces them.
func (s *Service) EventTopic(user int64) string { return keys.UserEvents(user) }

// EventSeq returns the number of the last event in EventTopic, 0 before the first. The list of
// events expires before the number does.
func (s *Service) EventSeq(ctx context.Context, user int64) (int64, error) {
	name := keys.UserEventSeq(user)
	seq, err := s.store.db.AutoPipelined.HGet(ctx, name, "seq").Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, redisdb.WrapError("read the number of a player's last event", err)
	}
	values := redisdb.NewValues(name, []string{seq})
	return values.NextInt(), values.Err()
}

// slotRead is the reply of one read of a slot.
type slotRead struct {
	newest record // version 0: the slot is empty
	other  record // version 0: the slot does not keep the requested version
	nowMS  int64  // Unix time in ms, by the clock of Redis
}

// read returns the newest version of a slot, and the version other unless that is 0. The newest
// version comes with its state only if withState is set.
func (s store) read(ctx context.Context, id slotID, withState bool, other int64) (slotRead, error) {
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
		[]string{keys.Save(id.userID, id.gameID, id.name)},
		scripts.SaveReadArgs{WithState: stateFlag, Other: otherText}.List()...,
	)
	if err == nil {
		err = reply.Err(scripts.SaveRead)
	}
	if err != nil {
		return slotRead{}, err
	}
	values := redisdb.NewValues("the slot "+id.name, reply.Values)
	read := slotRead{nowMS: values.NextInt()}
	read.newest = parseRecord(values.NextInt(), values.NextText(), values.NextText())
	if mark, state := values.NextText(), values.NextText(); mark != "" {
		read.other = parseRecord(other, mark, state)
	}
	return read, values.Err()
}

// notChecked is the checked version of a write whose base is not the newest version: it can only be
// a repetition or a conflict, so the rules were not checked.
const notChecked = -1

// versionWrite is a record that is to become the newest version of a slot.
type versionWrite struct {
	baseVersion    int64 // the newest version, as the sender last read it
	checkedVersion int64 // the version that the rules compared with, or notChecked
	next           record
	eventMembers   []byte // members of the data of user.progress as JSON, without braces
}

// tooManyBytesError is returned when older versions must go to make room for the next one.
type tooManyBytesError struct {
	otherSlots []string // the player's slots beside the one that is written
}

func (e *tooManyBytesError) Error() string { return "the versions are too large together" }

// room is what a player's versions may take.
type room struct {
	maxBytes   int // of the states of all versions
	otherSlots []string
	mayDrop    bool // versions may be dropped: otherSlots is known
}

// write stores a version and returns it, or the one that the same message made before. It returns
// redisdb.ErrStale, *tooManyBytesError when versions must be dropped and may not, version_conflict
// or limit_reached.
func (s store) write(ctx context.Context, id slotID, w versionWrite, r room) (record, error) {
	summary := fmt.Sprintf("%d %d %d", w.next.version, w.next.savedAtMS, w.next.sizeBytes)
	slotKeys := []string{
		keys.Save(id.userID, id.gameID, id.name), keys.Saves(id.userID, id.gameID), keys.UserEventSeq(id.userID),
		keys.UserEvents(id.userID),
	}
	withOthers := "0"
	if r.mayDrop {
		withOthers = "1"
		for _, slot := range r.otherSlots {
			slotKeys = append(slotKeys, keys.Save(id.userID, id.gameID, slot))
		}
	}
	reply, err := s.db.RunScript(ctx, scripts.SaveWrite, slotKeys,
		scripts.SaveWriteArgs{
			Publish: s.db.PublishCommand, Nonce: idempotency.NewNonce(), Base: w.baseVersion,
			Checked: w.checkedVersion, Version: w.next.version, Message: w.next.messageDigest, Mark: w.next.mark(),
			State: []byte(w.next.state), Slot: id.name, Line: summary, MaxSlots: MaxSlots, MaxVersions: MaxVersions,
			EventValues: w.eventMembers, MaxBytes: r.maxBytes, WithOthers: withOthers,
		}.List()...)
	if err != nil {
		return record{}, err
	}
	switch reply.Status {
	case scripts.OK:
		return w.next, nil
	case scripts.Stale:
		if len(reply.Values) == 0 {
			return record{}, redisdb.ErrStale
		}
		values, needed := redisdb.NewValues("the slots of a player", reply.Values[1:]), &tooManyBytesError{}
		for range reply.Values[1:] {
			needed.otherSlots = append(needed.otherSlots, values.NextText())
		}
		return record{}, cmp.Or(values.Err(), error(needed))
	case scripts.Replay:
		values := redisdb.NewValues("the slot "+id.name, reply.Values)
		earlier := parseRecord(values.NextInt(), values.NextText(), "")
		return earlier, values.Err()
	case apierror.LimitReached.Code:
		values := redisdb.NewValues("a limit of saves", reply.Values)
		limit, most := values.NextText(), MaxSlots
		reached := apierror.LimitReached.WithReason("a player has at most %d slots in a game", most)
		if limit == "bytes" {
			most = r.maxBytes
			reached = apierror.LimitReached.WithReason("the saves of this player may have %d bytes together", most)
		}
		return record{}, cmp.Or(values.Err(), error(reached.WithMember("limit", limit).WithMember("max", most)))
	default:
		return record{}, reply.Err(scripts.SaveWrite)
	}
}

// history returns the kept versions without their states, newest first.
func (s store) history(ctx context.Context, id slotID) ([]record, error) {
	newest, err := s.newestVersion(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.readVersions(ctx, id, newest, keys.SaveMarkField)
}

// historyWithStates is history with the states, up to MaxVersions × MaxStateBytes.
func (s store) historyWithStates(ctx context.Context, id slotID) ([]record, error) {
	newest, err := s.newestVersion(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.readVersions(ctx, id, newest, keys.SaveMarkField, keys.SaveStateField)
}

// newestVersion returns the number of the newest version, 0 for an empty slot.
func (s store) newestVersion(ctx context.Context, id slotID) (int64, error) {
	version, err := s.db.Client.HGet(ctx, keys.Save(id.userID, id.gameID, id.name), keys.SaveVersionField).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return version, redisdb.WrapError("read the newest version of a save", err)
}

// readVersions reads the last MaxVersions versions up to newest: the mark of each, and the state if
// its field is given too. It leaves out a version that was dropped since newest was read.
func (s store) readVersions(
	ctx context.Context, id slotID, newest int64, fieldNames ...func(version int64) string,
) ([]record, error) {
	var fields []string
	for version := newest; version > max(0, newest-MaxVersions); version-- {
		for _, name := range fieldNames {
			fields = append(fields, name(version))
		}
	}
	if len(fields) == 0 {
		return nil, nil
	}
	values, err := s.db.Client.HMGet(ctx, keys.Save(id.userID, id.gameID, id.name), fields...).Result()
	if err != nil {
		return nil, redisdb.WrapError("read the history of a save", err)
	}
	var records []record
	for i := 0; i < len(values); i += len(fieldNames) {
		mark, kept := values[i].(string)
		if !kept {
			continue
		}
		state := ""
		if len(fieldNames) > 1 {
			state, _ = values[i+1].(string)
		}
		records = append(records, parseRecord(newest-int64(i/len(fieldNames)), mark, state))
	}
	return records, nil
}

// list returns the newest version of every slot, ordered by name.
func (s store) list(ctx context.Context, user, game int64) ([]SaveInfo, error) {
	summaries, err := s.db.Client.HGetAll(ctx, keys.Saves(user, game)).Result()
	if err != nil {
		return nil, redisdb.WrapError("list saves", err)
	}
	slots := make([]SaveInfo, 0, len(summaries))
	for slot, summary := range summaries {
		if slot == keys.SavesBytesField {
			continue
		}
		saved := SaveInfo{Slot: slot}
		var savedAtMS int64
		if _, err := fmt.Sscan(summary, &saved.Version, &savedAtMS, &saved.SizeBytes); err != nil {
			return nil, fmt.Errorf("decode the slot %s: %w", slot, err)
		}
		saved.SavedAt = time.UnixMilli(savedAtMS).UTC()
		slots = append(slots, saved)
	}
	slices.SortFunc(slots, func(a, b SaveInfo) int { return strings.Compare(a.Slot, b.Slot) })
	return slots, nil
}

// deleteAll deletes every slot of a player in a game, and the player's events.
func (s store) deleteAll(ctx context.Context, user, game int64) error {
	slots, err := s.db.Client.HKeys(ctx, keys.Saves(user, game)).Result()
	if err != nil {
		return redisdb.WrapError("list saves", err)
	}
	names := []string{keys.UserEventSeq(user), keys.UserEvents(user)}
	for _, slot := range slots {
		names = append(names, keys.Save(user, game, slot))
	}
	names = append(names, keys.Saves(user, game)) // last, so that a repetition finds the slots
	return redisdb.WrapError("delete saves", s.db.Client.Del(ctx, names...).Err())
}

// mark returns the text of SaveMarkField. The rates come last, since a path in them may contain
// spaces.
func (r record) mark() string {
	return strings.Join([]string{
		r.messageDigest, strconv.FormatInt(r.savedAtMS, 10), strconv.Itoa(r.sizeBytes), r.keyID, r.signature,
		r.gainBucketsJSON,
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
	r.sizeBytes, _ = strconv.Atoi(parts[2])
	r.messageDigest, r.keyID, r.signature, r.gainBucketsJSON = parts[0], parts[3], parts[4], parts[5]
	return r
}
