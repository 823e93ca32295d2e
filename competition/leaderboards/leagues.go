package leaderboards

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/validate"
)

// League divides the players of a season into tiers, and each tier into cohorts that are ranked
// separately. The best of a cohort begin the next season in the tier above, the last in the tier
// below.
type League struct {
	Size     int      `json:"size"`     // players of a cohort
	Tiers    []string `json:"tiers"`    // names, the lowest tier first: new players begin there
	Promote  int      `json:"promote"`  // players of a cohort who rise
	Relegate int      `json:"relegate"` // players of a cohort who fall
}

// Bounds of a league.
const (
	minCohort     = 10
	maxCohort     = 100
	maxTiers      = 20
	maxTierRunes  = 32
	tierMemory    = 4 // past seasons in which a player's tier is looked for
	leagueSegment = "@"
)

func (l *League) check(errs *apierror.FieldErrors, d *Definition) {
	validate.Range(errs, "league.size", int64(l.Size), minCohort, maxCohort)
	if len(l.Tiers) < 1 || len(l.Tiers) > maxTiers {
		errs.Add("league.tiers", "range", fmt.Sprintf("must be 1 to %d", maxTiers))
	}
	for i, tier := range l.Tiers {
		field := fmt.Sprintf("league.tiers[%d]", i)
		if strings.TrimSpace(tier) == "" || len([]rune(tier)) > maxTierRunes {
			errs.Add(field, "length", fmt.Sprintf("must be 1 to %d characters", maxTierRunes))
		}
		if slices.Contains(l.Tiers[:i], tier) {
			errs.Add(field, "duplicate", "is there twice")
		}
	}
	validate.Range(errs, "league.promote", int64(l.Promote), 0, maxCohort)
	validate.Range(errs, "league.relegate", int64(l.Relegate), 0, maxCohort)
	if l.Promote+l.Relegate > l.Size {
		errs.Add("league.relegate", "range", "must not be more, with promote, than the size")
	}
	if d.GraceSeconds != 0 {
		errs.Add("graceSeconds", "range", "must be 0 with a league: a cohort is over when the next one begins")
	}
	if *d.KeepSeasons < 1 {
		errs.Add("keepSeasons", "range", "must be 1 or more with a league: the last season decides the tier")
	}
}

// nextTier returns the tier of a player who was at a rank (from 0) of a cohort of a tier.
func (l *League) nextTier(tier int, rank, players int64) int {
	switch {
	case rank < int64(l.Promote):
		return tier + 1
	case rank >= players-int64(l.Relegate):
		return tier - 1
	}
	return tier
}

// cohort is a cohort of a season.
type cohort struct {
	tier   int
	number int64 // within the tier
}

// String returns the cohort as keys.BoardCohort has it.
func (c cohort) String() string { return strconv.Itoa(c.tier) + ":" + strconv.FormatInt(c.number, 10) }

func parseCohort(text string) (cohort, error) {
	tier, number, _ := strings.Cut(text, ":")
	t, tierErr := strconv.Atoi(tier)
	n, err := strconv.ParseInt(number, 10, 64)
	if tierErr != nil || err != nil || t < 0 {
		return cohort{}, fmt.Errorf("%q is no cohort of a league", text)
	}
	return cohort{t, n}, nil
}

// cutCohort returns segments without the cohort of a league, and the cohort, "" for none.
func cutCohort(segments string) (rest, cohort string) {
	rest, cohort, _ = strings.Cut(segments, leagueSegment+"=")
	return strings.TrimSuffix(rest, ","), cohort
}

// joinCohort returns segments with the cohort of a league as the last one.
func joinCohort(segments, cohort string) string {
	if segments == "" {
		return leagueSegment + "=" + cohort
	}
	return segments + "," + leagueSegment + "=" + cohort
}

// withCohort returns the segments of a score together with the player's cohort. It assigns a cohort
// if the player has none in this season yet.
func (s *Service) withCohort(ctx context.Context, b *board, one *season, userID int64, given string) (string, error) {
	league := b.definitionOf(one).League
	given, _ = cutCohort(given)
	stored, own, err := s.store.readCohort(ctx, b, one, userID)
	switch {
	case err != nil:
		return "", err
	case stored != "" && given == "":
		return stored, nil // all that the entry has
	case own != "":
		return joinCohort(given, own), nil
	}
	tier, err := s.findTier(ctx, b, one, userID)
	if err != nil {
		return "", err
	}
	tier = min(max(tier, 0), len(league.Tiers)-1)
	own, err = s.store.enterCohort(ctx, b, one, userID, tier, league.Size, s.draw())
	return joinCohort(given, own), err
}

// findTier returns the tier in which a player begins a season: by the end of the last season of the
// player, if that is one of the last few, else the lowest. It may be one more than there are, or
// -1.
func (s *Service) findTier(ctx context.Context, b *board, one *season, userID int64) (int, error) {
	for number := one.number - 1; number > 0 && number >= one.number-tierMemory; number-- {
		last := b.find(number)
		if last == nil {
			break
		}
		league := b.definitionOf(last).League
		if league == nil {
			continue
		}
		_, own, err := s.store.readCohort(ctx, b, last, userID)
		if err != nil {
			return 0, err
		}
		if own == "" {
			continue
		}
		was, err := parseCohort(own)
		if err != nil || number < one.number-1 { // who missed a season neither rises nor falls
			return was.tier, err
		}
		// No shard takes a score any more: what is read now stays.
		if !last.isSealed {
			if isSealed, err := s.store.sealShard(ctx, b, last, userID); err != nil || !isSealed {
				return 0, cmpOrConflict(err)
			}
		}
		rank, players, found, err := s.store.rankInCohort(ctx, b, last, userID, own)
		if err != nil || !found { // a hidden player neither rises nor falls
			return was.tier, err
		}
		return league.nextTier(was.tier, rank, players), nil
	}
	return 0, nil
}

// cmpOrConflict returns an error, and version_conflict for none.
func cmpOrConflict(err error) error {
	if err == nil {
		return apierror.VersionConflict
	}
	return err
}

// Cohort is a player's cohort of a league as it is on the wire.
type Cohort struct {
	Season   int64   `json:"season"`
	Tier     string  `json:"tier"`
	Cohort   int64   `json:"cohort"`   // number within the tier of the season, from 0
	Entries  []Entry `json:"entries"`  // of all its players, best first, with ranks within the cohort
	Promote  int     `json:"promote"`  // players who rise
	Relegate int     `json:"relegate"` // players who fall
}

// Cohort returns the cohort of the calling player in the current season, or in another one. It
// returns entry_not_found for a player without an entry in the season, season_not_found, and
// invalid_request on a board without a league.
func (s *Service) Cohort(
	ctx context.Context, caller principal.Caller, gameID int64, key string, seasonNumber int64,
) (Cohort, error) {
	if caller.Role != principal.Player {
		return Cohort{}, apierror.Forbidden
	}
	r, err := s.readRanking(ctx, caller, gameID, key, Scope{Season: seasonNumber})
	if err != nil {
		return Cohort{}, err
	}
	league := r.definition.League
	if league == nil {
		return Cohort{}, apierror.InvalidRequest.WithField("board", "range", "the leaderboard has no league")
	}
	_, own, err := s.store.readCohort(ctx, r.board, r.season, caller.UserID)
	if err != nil {
		return Cohort{}, err
	}
	if own == "" {
		return Cohort{}, apierror.EntryNotFound
	}
	at, err := parseCohort(own)
	if err != nil {
		return Cohort{}, err
	}
	if at.tier >= len(league.Tiers) {
		return Cohort{}, fmt.Errorf("the board %s has no tier %d", key, at.tier)
	}
	r.segment, r.value = leagueSegment, own
	members, err := s.store.slice(ctx, r, "-", maxCohort)
	if err != nil {
		return Cohort{}, err
	}
	entries, err := s.presentRun(ctx, r, members, "")
	return Cohort{
		Season: r.season.number, Tier: league.Tiers[at.tier], Cohort: at.number, Entries: entries,
		Promote: league.Promote, Relegate: league.Relegate,
	}, err
}
