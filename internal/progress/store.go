package progress

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/scripts"
)

type store struct{ db *redisdb.DB }

// EventTopic names the stream of a player's user.progress, which is the channel that tells of them too.
func (s *Service) EventTopic(user int64) string { return keys.UserEvents(user) }

// read answers the newest version, with its state only if whole, and the version other (0: none is asked for); what is not
// there has the version 0. now is ms by the clock of Redis.
func (s store) read(ctx context.Context, a address, whole bool, other int64) (newest, old record, now int64, err error) {
	with, wanted := "0", ""
	if whole {
		with = "1"
	}
	if other > 0 {
		wanted = strconv.FormatInt(other, 10)
	}
	word, rest, err := s.db.Run(ctx, scripts.SaveRead, []string{keys.Save(a.user, a.game, a.slot)}, with, wanted)
	if err != nil {
		return newest, old, 0, err
	}
	if word != "ok" {
		return newest, old, 0, redisdb.StatusError(scripts.SaveRead, word)
	}
	if now, err = strconv.ParseInt(rest[0], 10, 64); err != nil {
		return newest, old, 0, fmt.Errorf("read the clock: %w", err)
	}
	version, err := strconv.ParseInt(rest[1], 10, 64)
	if err != nil {
		return newest, old, 0, fmt.Errorf("read the version of %s: %w", a.slot, err)
	}
	newest = unpack(version, rest[2], rest[3])
	if rest[4] != "" {
		old = unpack(other, rest[4], rest[5])
	}
	return newest, old, now, nil
}

// write makes r the newest version of a slot whose newest version is base, or answers why not: the word "replay" comes with the
// version that the same message made.
func (s store) write(ctx context.Context, a address, base, judged int64, r record, event []byte) (word string, before record, err error) {
	line := strings.Join([]string{strconv.FormatInt(r.version, 10), strconv.FormatInt(r.at, 10), strconv.Itoa(r.size)}, " ")
	word, rest, err := s.db.Run(ctx, scripts.SaveWrite,
		[]string{keys.Save(a.user, a.game, a.slot), keys.Saves(a.user, a.game), keys.Progress(a.user), keys.UserEvents(a.user)},
		s.db.PublishCommand, rand.Int64N(1<<48), base, judged, r.version, r.message, pack(r), []byte(r.state), a.slot, line, MaxSlots, MaxVersions, event)
	switch {
	case err != nil:
		return "", before, err
	case word == "ok", word == "stale", word == "version_conflict", word == "slots_full":
		return word, before, nil
	case word != "replay":
		return "", before, redisdb.StatusError(scripts.SaveWrite, word)
	}
	version, err := strconv.ParseInt(rest[0], 10, 64)
	if err != nil {
		return word, before, fmt.Errorf("read the version of %s: %w", a.slot, err)
	}
	return word, unpack(version, rest[1], ""), nil
}

// history answers the versions that are kept, newest first.
func (s store) history(ctx context.Context, a address) ([]record, error) {
	fields, err := s.db.Client.HGetAll(ctx, keys.Save(a.user, a.game, a.slot)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read the history of a save", err)
	}
	var records []record
	for field, mark := range fields {
		number, ok := strings.CutSuffix(field, ":mark")
		if !ok {
			continue
		}
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the versions of %s: %w", a.slot, err)
		}
		records = append(records, unpack(version, mark, fields[number]))
	}
	slices.SortFunc(records, func(a, b record) int { return int(b.version - a.version) })
	return records, nil
}

// list answers the newest version of every slot, by name.
func (s store) list(ctx context.Context, user, game int64) ([]Saved, error) {
	lines, err := s.db.Client.HGetAll(ctx, keys.Saves(user, game)).Result()
	if err != nil {
		return nil, redisdb.WrapError("list saves", err)
	}
	slots := make([]Saved, 0, len(lines))
	for slot, line := range lines {
		saved := Saved{Slot: slot}
		var at int64
		if _, err := fmt.Sscan(line, &saved.Version, &at, &saved.Size); err != nil {
			return nil, fmt.Errorf("read the slot %s: %w", slot, err)
		}
		saved.SavedAt = time.UnixMilli(at).UTC()
		slots = append(slots, saved)
	}
	slices.SortFunc(slots, func(a, b Saved) int { return strings.Compare(a.Slot, b.Slot) })
	return slots, nil
}

// pack writes what stands beside a state; pace comes last, since a path in it may have spaces.
func pack(r record) string {
	return strings.Join([]string{r.message, strconv.FormatInt(r.at, 10), strconv.Itoa(r.size), r.key, r.sign, r.pace}, " ")
}

// unpack reads what pack wrote. What somebody else wrote gives a record that its signature does not fit.
func unpack(version int64, mark, state string) record {
	r := record{version: version, state: jsontext.Value(state)}
	parts := strings.SplitN(mark, " ", 6)
	if len(parts) < 6 {
		return r
	}
	r.at, _ = strconv.ParseInt(parts[1], 10, 64)
	r.size, _ = strconv.Atoi(parts[2])
	r.message, r.key, r.sign, r.pace = parts[0], parts[3], parts[4], parts[5]
	return r
}
