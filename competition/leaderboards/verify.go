package leaderboards

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
)

// Verification has the counts of a season and its contradictions.
type Verification struct {
	Board       string       `json:"board"`
	Season      int64        `json:"season"`
	Entries     int64        `json:"entries"` // in the order
	Hidden      int64        `json:"hidden"`
	Differences []Difference `json:"differences"`
}

// Difference is something in the store that breaks a promise of this package.
type Difference struct {
	UserID  int64  `json:"userId,omitzero"` // 0: it is about the season
	Problem string `json:"problem"`
}

// verifier compares one season.
type verifier struct {
	store    store
	ranking  ranking
	report   Verification
	suspects map[int64]map[place]bool // places of players whose entries may not fit
}

// Verify compares the records of a season with its orders: each player who is not hidden must be in
// the order once, and in those of its segments. It changes nothing, and nodes may keep serving: a
// difference is read again at one instant before it is reported. Only staff may call it. It returns
// season_not_found.
func (s *Service) Verify(
	ctx context.Context, caller principal.Caller, gameID int64, key string, number int64,
) (Verification, error) {
	if err := s.authorizeManage(ctx, caller, gameID); err != nil {
		return Verification{}, err
	}
	b, err := s.reload(ctx, gameID, key)
	if err != nil {
		return Verification{}, err
	}
	one := b.find(number)
	if one == nil {
		return Verification{}, apierror.SeasonNotFound
	}
	v := verifier{
		store: s.store, ranking: b.ranking(one), suspects: map[int64]map[place]bool{},
		report: Verification{Board: key, Season: number, Differences: []Difference{}},
	}
	for n := range b.definitionOf(one).Shards {
		if err := v.compareShard(ctx, b.shard(one, n), n); err != nil {
			return Verification{}, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v.suspects)) {
		if err := v.inspect(ctx, id); err != nil {
			return Verification{}, err
		}
	}
	return v.report, nil
}

func (v *verifier) add(userID int64, format string, args ...any) {
	v.report.Differences = append(v.report.Differences, Difference{userID, fmt.Sprintf(format, args...)})
}

// suspect notes that a player may be in a place wrongly, or not in it.
func (v *verifier) suspect(userID int64, p place) {
	if v.suspects[userID] == nil {
		v.suspects[userID] = map[place]bool{}
	}
	v.suspects[userID][p] = true
}

func (v *verifier) compareShard(ctx context.Context, at seasonShard, number int) error {
	sealed, hiddenBefore, zsets, err := v.store.readSeasonState(ctx, at)
	if err != nil {
		return err
	}
	if v.ranking.season.isSealed && !sealed {
		v.add(0, "shard %d is not sealed, and the season is", number)
	}
	for _, zset := range append(zsets, at.rankKey()) {
		if err := v.store.scanMembers(ctx, zset, func(members []string) error {
			return v.compareMembers(ctx, zset, members)
		}); err != nil {
			return err
		}
	}
	hidden := int64(0)
	if err := v.store.scanRecords(ctx, at, func(records map[string]string) error {
		n, err := v.compareRecords(ctx, at, number, records)
		hidden += n
		return err
	}); err != nil {
		return err
	}
	v.report.Hidden += hidden
	_, hiddenAfter, _, err := v.store.readSeasonState(ctx, at)
	if hiddenBefore == hiddenAfter && hidden != hiddenAfter { // else it has changed meanwhile
		v.add(0, "shard %d has %d hidden entries and counts %d", number, hidden, hiddenAfter)
	}
	return err
}

// compareMembers suspects the members of a zset that are not those of their players' records.
func (v *verifier) compareMembers(ctx context.Context, zset string, members []string) error {
	standings, ids := make([]standing, 0, len(members)), make([]int64, 0, len(members))
	for _, member := range members {
		one, err := decodeMember(v.ranking.definition, member)
		if err != nil {
			v.add(0, "a member of the order does not have its form: %s", hex.EncodeToString([]byte(member)))
			continue
		}
		standings, ids = append(standings, one), append(ids, one.userID)
	}
	texts, err := v.store.readRecordTexts(ctx, v.ranking, ids)
	if err != nil {
		return err
	}
	for _, one := range standings {
		stored, err := decodeRecord(v.ranking.definition, one.userID, texts[one.userID])
		if err != nil || stored.isHidden || stored.member != one.member {
			v.suspect(one.userID, place{zset, one.member})
		}
	}
	return nil
}

// compareRecords counts the entries of some records, and suspects those that are not where they
// must be.
func (v *verifier) compareRecords(
	ctx context.Context, at seasonShard, number int, texts map[string]string,
) (hidden int64, err error) {
	records := map[int64]record{}
	for field, text := range texts {
		id, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			v.add(0, "an entry has the player %q", field)
			continue
		}
		one, err := decodeRecord(v.ranking.definition, id, text)
		switch {
		case err != nil:
			v.add(id, "the record does not have its form")
		case v.ranking.definition.shardOf(id) != number:
			v.add(id, "the record is on shard %d, not on that of the player", number)
		case one.isHidden:
			hidden++
			records[id] = one
		default:
			v.report.Entries++
			records[id] = one
		}
	}
	details, err := v.store.readDetails(ctx, v.ranking, records)
	if err != nil {
		return 0, err
	}
	var places []place
	var owners []record
	for id, one := range records {
		for _, p := range v.placesOf(at, one, details[id].segments) {
			places, owners = append(places, p), append(owners, one)
		}
	}
	there, err := v.store.areThere(ctx, places)
	if err != nil {
		return 0, err
	}
	for i, p := range places {
		if there[i] == owners[i].isHidden {
			v.suspect(owners[i].userID, p)
		}
	}
	return hidden, nil
}

// placesOf returns the places that an entry has while it is not hidden.
func (v *verifier) placesOf(at seasonShard, one record, segments string) []place {
	places := []place{{at.rankKey(), one.member}}
	for segment, value := range parseSegments(segments) {
		places = append(places, place{at.segmentRankKey(segment, value), one.member})
	}
	return places
}

// inspect reads all of a player's entry at one instant, and adds what does not fit.
func (v *verifier) inspect(ctx context.Context, userID int64) error {
	at := v.ranking.board.shardOf(v.ranking.season, userID)
	for range maxAttempts {
		before, err := v.store.inspect(ctx, at, userID, nil)
		if err != nil {
			return err
		}
		var one record
		var wanted []place
		if before.record != "" {
			if one, err = decodeRecord(v.ranking.definition, userID, before.record); err != nil {
				return nil // it is in the report
			}
			wanted = v.placesOf(at, one, before.segments)
		}
		all := slices.Clone(wanted)
		for p := range v.suspects[userID] {
			if !slices.Contains(wanted, p) {
				all = append(all, p)
			}
		}
		now, err := v.store.inspect(ctx, at, userID, all)
		if err != nil {
			return err
		}
		if now.record != before.record || now.segments != before.segments {
			continue // it has changed in between
		}
		v.explain(userID, now, one, wanted, all)
		return nil
	}
	return nil // it changes all the time, so it was right at some
}

// explain adds what does not fit in an entry.
func (v *verifier) explain(userID int64, now storedEntry, one record, wanted, all []place) {
	for i, p := range all {
		isWanted := i < len(wanted)
		switch {
		case isWanted && !one.isHidden && !now.isThere[i]:
			v.add(userID, "has a record and is not in %s", p.zset)
		case !now.isThere[i]:
		case isWanted && one.isHidden:
			v.add(userID, "is hidden and is in %s", p.zset)
		case !isWanted && now.record == "":
			v.add(userID, "is in %s without a record", p.zset)
		case !isWanted:
			v.add(userID, "is in %s as %s, which its record is not", p.zset, hex.EncodeToString([]byte(p.member)))
		}
	}
}
