package leaderboards

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// Scope names the entries that a caller wants to see.
type Scope struct {
	Season  int64  // 0: the current one
	Segment string // "country:DE", or "" for all players
}

// findRanking returns the order of a scope. It returns board_not_found, season_not_found, and
// invalid_request for a segment that the board does not have.
func (s *Service) findRanking(ctx context.Context, gameID int64, key string, scope Scope) (ranking, error) {
	b, err := s.load(ctx, gameID, key)
	if err != nil {
		return ranking{}, err
	}
	now := time.Now().UnixMilli()
	if b, err = s.addDueSeasons(ctx, b, now); err != nil {
		return ranking{}, err
	}
	one := b.currentAt(now)
	if scope.Season != 0 {
		if one = b.find(scope.Season); one == nil || one.number > b.currentAt(now).number {
			return ranking{}, apierror.SeasonNotFound
		}
	}
	r := b.ranking(one)
	if scope.Segment != "" {
		segment, value, _ := strings.Cut(scope.Segment, ":")
		if !slices.Contains(r.definition.Segments, segment) || !valuePattern.MatchString(value) {
			return ranking{}, apierror.InvalidRequest.WithField("segment", "unknown",
				"must be a segment of the leaderboard and its value: country:DE")
		}
		r.segment, r.value = segment, value
	}
	return r, nil
}

func (s *Service) readRanking(
	ctx context.Context, caller principal.Caller, gameID int64, key string, scope Scope,
) (ranking, error) {
	if err := s.authorizeRead(ctx, caller, gameID); err != nil {
		return ranking{}, err
	}
	return s.findRanking(ctx, gameID, key, scope)
}

// Entries returns a page of entries, best first, and the cursor of the next page, or "" on the last
// page. A page starts after the position that the last entry of the previous page had, even if that
// entry has moved. It returns season_not_found, and invalid_request for a faulty segment or cursor.
func (s *Service) Entries(
	ctx context.Context, caller principal.Caller, gameID int64, key string, scope Scope, cursor string, limit int,
) (page []Entry, next string, err error) {
	r, err := s.readRanking(ctx, caller, gameID, key, scope)
	if err != nil {
		return nil, "", err
	}
	from := "-"
	if cursor != "" {
		member, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil || len(member) != memberBytes {
			return nil, "", apierror.InvalidRequest.WithField("cursor", "format", "is not a cursor that this list gave")
		}
		from = "(" + string(member)
	}
	members, err := s.store.slice(ctx, r, from, limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(members) > limit {
		members = members[:limit]
		next = base64.RawURLEncoding.EncodeToString([]byte(members[limit-1]))
	}
	page, err = s.presentRun(ctx, r, members, "")
	return page, next, err
}

// Around returns up to limit entries with that of the calling player as near to their middle as the
// ends of the order allow. It returns entry_not_found, and the codes of Entries.
func (s *Service) Around(
	ctx context.Context, caller principal.Caller, gameID int64, key string, scope Scope, limit int,
) ([]Entry, error) {
	if caller.Role != principal.Player {
		return nil, apierror.Forbidden
	}
	r, err := s.readRanking(ctx, caller, gameID, key, scope)
	if err != nil {
		return nil, err
	}
	return s.readAround(ctx, r, caller.UserID, limit)
}

// readAround returns up to limit entries around that of a player. It returns entry_not_found.
func (s *Service) readAround(ctx context.Context, r ranking, userID int64, limit int) ([]Entry, error) {
	own, err := s.findRecord(ctx, r, userID, true)
	if err != nil {
		return nil, err
	}
	before, err := s.store.sliceBefore(ctx, r, own.member, limit-1)
	if err != nil {
		return nil, err
	}
	behind, err := s.store.slice(ctx, r, "("+own.member, limit-1)
	if err != nil {
		return nil, err
	}
	ahead := min(len(before), max((limit-1)/2, limit-1-len(behind)))
	members := slices.Clone(before[:ahead])
	slices.Reverse(members)
	members = append(append(members, own.member), behind[:min(len(behind), limit-1-ahead)]...)
	hidden := ""
	if own.isHidden {
		hidden = own.member
	}
	return s.presentRun(ctx, r, members, hidden)
}

const (
	maxFriends        = 500 // of a player's list of friends, that are compared
	minFriendsChecked = 20  // at once, for whether they are friends
)

// FriendEntries returns the entries of the calling player and of friends, best first, up to limit.
// It returns the codes of Entries.
//
// It first reads the entries of all players in the caller's list. Only for the best of them it
// checks whether they are friends, and reads their names.
func (s *Service) FriendEntries(
	ctx context.Context, caller principal.Caller, gameID int64, key string, scope Scope, limit int,
) ([]Entry, error) {
	if caller.Role != principal.Player {
		return nil, apierror.Forbidden
	}
	r, err := s.readRanking(ctx, caller, gameID, key, scope)
	if err != nil {
		return nil, err
	}
	listed, err := s.players.ListedFriends(ctx, caller.UserID, maxFriends)
	if err != nil {
		return nil, err
	}
	records, err := s.store.readRecords(ctx, r, append(listed, caller.UserID))
	if err != nil {
		return nil, err
	}
	places := make([]standing, 0, len(records))
	for _, one := range records {
		if !one.isHidden || one.userID == caller.UserID {
			places = append(places, one.standing)
		}
	}
	slices.SortFunc(places, func(a, b standing) int { return strings.Compare(a.member, b.member) })
	kept := make([]standing, 0, limit)
	for part := range slices.Chunk(places, max(limit, minFriendsChecked)) {
		chosen, err := s.chooseFriends(ctx, r, caller.UserID, part)
		if err != nil {
			return nil, err
		}
		if kept = append(kept, chosen...); len(kept) >= limit {
			break
		}
	}
	return s.presentEach(ctx, r, kept[:min(limit, len(kept))])
}

// chooseFriends returns those places that are in the ranking and belong to a player or a friend.
func (s *Service) chooseFriends(ctx context.Context, r ranking, userID int64, places []standing) ([]standing, error) {
	others := make([]int64, 0, len(places))
	for _, place := range places {
		if place.userID != userID {
			others = append(others, place.userID)
		}
	}
	areFriends, err := s.players.AreFriends(ctx, userID, others...)
	if err != nil {
		return nil, err
	}
	places = slices.DeleteFunc(slices.Clone(places), func(place standing) bool {
		return place.userID != userID && !areFriends[place.userID]
	})
	if r.segment == "" || len(places) == 0 {
		return places, nil
	}
	held, err := s.store.holds(ctx, r, places)
	if err != nil {
		return nil, err
	}
	var chosen []standing
	for i, place := range places {
		if held[i] {
			chosen = append(chosen, place)
		}
	}
	return chosen, nil
}

// GetEntry returns the entry of a player. An entry that is hidden is entry_not_found for all but
// staff and the player. It returns the codes of Entries.
func (s *Service) GetEntry(
	ctx context.Context, caller principal.Caller, gameID int64, key string, scope Scope, userID int64,
) (Entry, error) {
	r, err := s.readRanking(ctx, caller, gameID, key, scope)
	if err != nil {
		return Entry{}, err
	}
	return s.readEntry(ctx, r, userID, caller.Role != principal.Player || caller.UserID == userID)
}

// findRecord returns the record of a player. It returns entry_not_found.
func (s *Service) findRecord(ctx context.Context, r ranking, userID int64, showHidden bool) (record, error) {
	records, err := s.store.readRecords(ctx, r, []int64{userID})
	if err != nil {
		return record{}, err
	}
	own, ok := records[userID]
	if !ok || own.isHidden && !showHidden {
		return record{}, apierror.EntryNotFound
	}
	if r.segment == "" {
		return own, nil
	}
	if own.isHidden { // it is in no zset
		more, err := s.store.readDetails(ctx, r, records)
		if err == nil && !slices.Contains(strings.Split(more[userID].segments, ","), r.segment+"="+r.value) {
			err = apierror.EntryNotFound
		}
		return own, err
	}
	held, err := s.store.holds(ctx, r, []standing{own.standing})
	if err == nil && !held[0] {
		err = apierror.EntryNotFound
	}
	return own, err
}

// readEntry returns the entry of a player. It returns entry_not_found.
func (s *Service) readEntry(ctx context.Context, r ranking, userID int64, showHidden bool) (Entry, error) {
	own, err := s.findRecord(ctx, r, userID, showHidden)
	if err != nil {
		return Entry{}, err
	}
	entries, err := s.presentEach(ctx, r, []standing{own.standing})
	if err != nil {
		return Entry{}, err
	}
	if len(entries) == 0 { // removed meanwhile
		return Entry{}, apierror.EntryNotFound
	}
	return entries[0], nil
}

// rankedStanding is a standing with its numbers.
type rankedStanding struct {
	standing
	rank, place int64
}

// presentRun returns the entries of members that follow each other. hidden is the one that is not
// counted, or "".
func (s *Service) presentRun(ctx context.Context, r ranking, members []string, hidden string) ([]Entry, error) {
	if len(members) == 0 {
		return []Entry{}, nil
	}
	ranked, total, err := s.rankRun(ctx, r, members, hidden)
	if err != nil {
		return nil, err
	}
	return s.present(ctx, r, ranked, total)
}

// rankRun returns the ranks of consecutive members, and the number of all entries. There must be at
// least one member.
func (s *Service) rankRun(
	ctx context.Context, r ranking, members []string, hidden string,
) (ranked []rankedStanding, total int64, err error) {
	ranked = make([]rankedStanding, len(members))
	for i, member := range members {
		if ranked[i].standing, err = decodeMember(r.definition, member); err != nil {
			return nil, 0, err
		}
	}
	ahead, total, err := s.store.countAhead(ctx, r, []string{members[0], ranked[0].prefix()})
	if err != nil {
		return nil, 0, err
	}
	rank := ahead[0] + 1
	for i := range ranked {
		one := &ranked[i]
		one.rank, one.place = rank, rank
		if r.definition.Ties == TiesShared {
			if i == 0 {
				one.place = ahead[1] + 1
			} else if one.prefix() == ranked[i-1].prefix() {
				one.place = ranked[i-1].place
			}
		}
		if one.member != hidden {
			rank++
		}
	}
	return ranked, total, nil
}

// presentEach returns the entries of standings anywhere in the order.
func (s *Service) presentEach(ctx context.Context, r ranking, places []standing) ([]Entry, error) {
	if len(places) == 0 {
		return []Entry{}, nil
	}
	bounds := make([]string, 0, 2*len(places))
	for _, one := range places {
		bounds = append(bounds, one.member)
		if r.definition.Ties == TiesShared {
			bounds = append(bounds, one.prefix())
		}
	}
	ahead, entries, err := s.store.countAhead(ctx, r, bounds)
	if err != nil {
		return nil, err
	}
	ranked := make([]rankedStanding, len(places))
	for i, one := range places {
		each := len(bounds) / len(places)
		ranked[i] = rankedStanding{one, ahead[i*each] + 1, ahead[i*each+each-1] + 1}
	}
	return s.present(ctx, r, ranked, entries)
}

// present returns entries with all their stored details. It leaves out entries that were removed
// since they were listed.
func (s *Service) present(ctx context.Context, r ranking, ranked []rankedStanding, total int64) ([]Entry, error) {
	ids := make([]int64, len(ranked))
	for i, one := range ranked {
		ids[i] = one.userID
	}
	records, err := s.store.readRecords(ctx, r, ids)
	if err != nil {
		return nil, err
	}
	more, err := s.store.readDetails(ctx, r, records)
	if err != nil {
		return nil, err
	}
	profiles, err := s.players.Profiles(ctx, ids...)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(ranked))
	for _, one := range ranked {
		stored, ok := records[one.userID]
		if !ok {
			continue
		}
		e := Entry{
			Rank: one.rank, Place: one.place, User: profiles[one.userID], Score: Score{one.score, r.definition.Decimals},
			ReachedAt: one.reachedAt, Submissions: stored.submissions, Percentile: percentBehind(one.rank, total),
			Metadata: more[one.userID].Metadata, Evidence: more[one.userID].Evidence, Segments: map[string]string{},
			Hidden: stored.isHidden,
		}
		e.User.ID = one.userID // also of a player who is gone
		if r.definition.Subscore != nil {
			e.Subscore = &Score{one.sub, r.definition.Decimals}
		}
		if e.Metadata == nil {
			e.Metadata = wire.RawJSON("{}")
		}
		for segment, value := range parseSegments(more[one.userID].segments) {
			if segment != leagueSegment {
				e.Segments[segment] = value
			}
		}
		entries = append(entries, e)
	}
	return entries, nil
}
