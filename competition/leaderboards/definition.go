package leaderboards

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/text"
	"github.com/parlor-games/parlor/internal/base/validate"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// Order is which scores are better.
type Order string

// All orders.
const (
	Descending Order = "desc" // the highest first
	Ascending  Order = "asc"  // the lowest first
)

// Operator says how a further score changes an entry.
type Operator string

// All operators. Best keeps the better score by the order of the board.
const (
	Best Operator = "best"
	Last Operator = "last"
	Sum  Operator = "sum"
	Min  Operator = "min"
	Max  Operator = "max"
)

// Ties is what place entries have that are equal in score and subscore. Their rank is by time.
type Ties string

// All kinds of ties.
const (
	TiesFirst  Ties = "first"  // who reached the score first is ahead
	TiesShared Ties = "shared" // all have the same place: 1, 1, 3
)

// Writer is a kind of caller that may send scores.
type Writer string

// All writers.
const (
	WriterServer  Writer = "server"  // the game's server and the operator
	WriterPlayers Writer = "players" // each player, for themself
	WriterRooms   Writer = "rooms"   // finished rooms of a game whose settings name the board
)

// Writers are the callers that may send scores. A request may name one word instead of a list.
type Writers []Writer

// UnmarshalJSON takes one word or a list.
func (w *Writers) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var one Writer
		err := wire.Unmarshal(b, &one)
		*w = Writers{one}
		return err
	}
	return wire.Unmarshal(b, (*[]Writer)(w))
}

// Subscore orders entries with the same score. It has the decimals of the score. With the operator
// best it is the subscore of the best score, and the better one of equal scores.
type Subscore struct {
	Order    Order    `json:"order" given:"nonzero"`
	Operator Operator `json:"operator" given:"nonzero"`
}

// Rules are what scores of players must keep. An absent member sets no rule.
type Rules struct {
	Min                *ScoreInput `json:"min,omitzero"`
	Max                *ScoreInput `json:"max,omitzero"`
	MaxStep            *ScoreInput `json:"maxStep,omitzero"` // between the entry before and after a score
	MinIntervalSeconds int64       `json:"minIntervalSeconds,omitzero"`
	MaxSubmissions     int64       `json:"maxSubmissions,omitzero"` // of a player in a season
	Play               bool        `json:"play,omitzero"`           // each score needs a play of its own
	MinPlaySeconds     int64       `json:"minPlaySeconds,omitzero"`
	MaxPlaySeconds     int64       `json:"maxPlaySeconds,omitzero"` // 0: an hour
}

// Schedule sets when seasons begin: by a cron expression of five fields in a time zone, or at a
// fixed interval.
type Schedule struct {
	Cron         string `json:"cron,omitzero"`
	TimeZone     string `json:"timeZone,omitzero"` // of the IANA database
	EverySeconds int64  `json:"everySeconds,omitzero"`
}

// Definition has the settings of a board. Order, operator, decimals, subscore, ties and shards
// never change. A change of the others takes effect with the next season, unless the patch has
// EffectiveNow.
type Definition struct {
	Board        string       `json:"board"` // its key within the game
	Name         string       `json:"name"`
	Order        Order        `json:"order" given:"nonzero"`    // default: desc
	Operator     Operator     `json:"operator" given:"nonzero"` // default: best
	Decimals     int          `json:"decimals"`                 // fraction digits of scores, 0 to 6
	Subscore     *Subscore    `json:"subscore"`                 // nil: none
	Ties         Ties         `json:"ties" given:"nonzero"`     // default: first
	Writers      Writers      `json:"writers"`                  // default: server
	Rules        *Rules       `json:"rules,omitzero"`           // of scores of players
	Schedule     *Schedule    `json:"schedule"`                 // nil: a season lasts until staff ends it
	StartsAt     *time.Time   `json:"startsAt,omitzero"`        // of the first season; default: now
	GraceSeconds int64        `json:"graceSeconds"`             // for late results of a season that is over
	KeepSeasons  *int64       `json:"keepSeasons,omitzero"`     // past seasons that are kept; default: 10
	Segments     []string     `json:"segments"`                 // names by which players are grouped
	MaxEntries   *int64       `json:"maxEntries"`               // nil: any number
	Shards       int          `json:"shards" given:"nonzero"`   // default: 1
	League       *League      `json:"league,omitzero"`          // nil: none
	Prizes       *Prizes      `json:"prizes,omitzero"`          // of each season; nil: none
	Metadata     wire.RawJSON `json:"metadata"`                 // a JSON object; default: {}

	by string // ActorID of who promised the prizes
}

// Bounds of a definition.
const (
	maxNameRunes       = 80
	maxShards          = 64
	maxGraceSeconds    = 86_400
	maxKeepSeasons     = 400
	defaultKeepSeasons = 10
	maxSegments        = 4
	maxMetadataKiB     = 4
	maxRuleSeconds     = 7 * 86_400
	minSeasonSeconds   = 60
	maxSeasonSeconds   = 10 * 366 * 86_400
	defaultPlaySeconds = 3_600
)

var (
	boardPattern   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,47}$`)
	segmentPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,15}$`)
	valuePattern   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
)

// withDefaults returns the definition with the defaults of what is absent.
func (d Definition) withDefaults() Definition {
	d.Order = cmp.Or(d.Order, Descending)
	d.Operator = cmp.Or(d.Operator, Best)
	d.Ties = cmp.Or(d.Ties, TiesFirst)
	d.Shards = cmp.Or(d.Shards, 1)
	if d.Writers == nil {
		d.Writers = Writers{WriterServer}
	}
	if d.KeepSeasons == nil {
		d.KeepSeasons = new(int64(defaultKeepSeasons))
	}
	if d.Segments == nil {
		d.Segments = []string{}
	}
	if d.Subscore != nil {
		sub := *d.Subscore
		sub.Order = cmp.Or(sub.Order, Descending)
		sub.Operator = cmp.Or(sub.Operator, Best)
		d.Subscore = &sub
	}
	if d.Prizes != nil {
		d.Prizes = d.Prizes.withDefaults()
	}
	return d
}

// check returns invalid_request with every faulty field of a definition with its defaults.
func (d *Definition) check() error {
	var errs apierror.FieldErrors
	if !boardPattern.MatchString(d.Board) {
		errs.Add("board", "format", "must be 1 to 48 of a-z, 0-9, _ and -, and start with a letter or digit")
	}
	name, err := text.CheckLine("name", d.Name, maxNameRunes)
	errs.Merge(err)
	d.Name = name
	validate.Word(&errs, "order", d.Order, Descending, Ascending)
	validate.Word(&errs, "operator", d.Operator, Best, Last, Sum, Min, Max)
	validate.Word(&errs, "ties", d.Ties, TiesFirst, TiesShared)
	validate.Range(&errs, "decimals", int64(d.Decimals), 0, maxDecimals)
	validate.Range(&errs, "shards", int64(d.Shards), 1, maxShards)
	validate.Range(&errs, "graceSeconds", d.GraceSeconds, 0, maxGraceSeconds)
	validate.Range(&errs, "keepSeasons", *d.KeepSeasons, 0, maxKeepSeasons)
	if d.StartsAt != nil && time.Until(*d.StartsAt) > maxSeasonSeconds*time.Second {
		errs.Add("startsAt", "range", "must be within ten years")
	}
	if d.Subscore != nil {
		validate.Word(&errs, "subscore.order", d.Subscore.Order, Descending, Ascending)
		validate.Word(&errs, "subscore.operator", d.Subscore.Operator, Best, Last, Sum, Min, Max)
	}
	if d.MaxEntries != nil {
		validate.Range(&errs, "maxEntries", *d.MaxEntries, int64(d.Shards), 1_000_000_000)
	}
	d.checkWriters(&errs)
	d.checkSegments(&errs)
	if d.Rules != nil {
		d.Rules.check(&errs, d.Decimals)
	}
	if d.Schedule != nil {
		d.Schedule.check(&errs)
	}
	if d.League != nil {
		d.League.check(&errs, d)
	}
	if d.Prizes != nil {
		d.Prizes.check(&errs)
	}
	d.Metadata = validate.Object(&errs, "metadata", d.Metadata, maxMetadataKiB)
	return errs.Err()
}

func (d *Definition) checkWriters(errs *apierror.FieldErrors) {
	if len(d.Writers) == 0 {
		errs.Add("writers", "required", "must name at least one")
	}
	for i, w := range d.Writers {
		validate.Word(errs, fmt.Sprintf("writers[%d]", i), w, WriterServer, WriterPlayers, WriterRooms)
		if slices.Contains(d.Writers[:i], w) {
			errs.Add(fmt.Sprintf("writers[%d]", i), "duplicate", "is there twice")
		}
	}
	if d.Rules != nil && !slices.Contains(d.Writers, WriterPlayers) {
		errs.Add("rules", "range", "are for scores of players, whom writers does not name")
	}
	if d.Prizes != nil && slices.Contains(d.Writers, WriterPlayers) {
		CheckRulesForPrizes(errs, "rules", d.Order, d.Rules)
	}
}

// CheckRulesForPrizes adds an error for each rule that the scores of players lack where prizes are
// paid for them: a bound of the best score, and that a score ends a play. field names the rules.
func CheckRulesForPrizes(errs *apierror.FieldErrors, field string, order Order, rules *Rules) {
	if rules == nil {
		rules = &Rules{}
	}
	best, bound := "max", rules.Max
	if order == Ascending {
		best, bound = "min", rules.Min
	}
	if bound == nil {
		errs.Add(field+"."+best, "required", "must bound the scores that players send for money")
	}
	if !rules.Play {
		errs.Add(field+".play", "required", "must be true where players send scores for money")
	}
}

func (d *Definition) checkSegments(errs *apierror.FieldErrors) {
	if len(d.Segments) > maxSegments {
		errs.Add("segments", "range", fmt.Sprintf("must be at most %d", maxSegments))
		return
	}
	for i, s := range d.Segments {
		if !segmentPattern.MatchString(s) {
			errs.Add(fmt.Sprintf("segments[%d]", i), "format", "must be 1 to 16 of a-z, 0-9, _ and -, and start with a letter")
		}
		if slices.Contains(d.Segments[:i], s) {
			errs.Add(fmt.Sprintf("segments[%d]", i), "duplicate", "is there twice")
		}
	}
}

func (r *Rules) check(errs *apierror.FieldErrors, decimals int) {
	var bounds [2]*int64
	for i, bound := range []struct {
		name  string
		score *ScoreInput
	}{{"min", r.Min}, {"max", r.Max}, {"maxStep", r.MaxStep}} {
		if bound.score == nil {
			continue
		}
		units, problem := bound.score.toUnits(decimals)
		if problem == "" && bound.name == "maxStep" && units < 1 {
			problem = "must be more than 0"
		}
		if problem != "" {
			errs.Add("rules."+bound.name, "format", problem)
		} else if i < len(bounds) {
			bounds[i] = &units
		}
	}
	if bounds[0] != nil && bounds[1] != nil && *bounds[0] > *bounds[1] {
		errs.Add("rules.max", "range", "must not be less than min")
	}
	validate.Range(errs, "rules.minIntervalSeconds", r.MinIntervalSeconds, 0, maxRuleSeconds)
	validate.Range(errs, "rules.maxSubmissions", r.MaxSubmissions, 0, 1_000_000)
	validate.Range(errs, "rules.minPlaySeconds", r.MinPlaySeconds, 0, maxRuleSeconds)
	validate.Range(errs, "rules.maxPlaySeconds", r.MaxPlaySeconds, 0, maxRuleSeconds)
	if !r.Play && (r.MinPlaySeconds > 0 || r.MaxPlaySeconds > 0) {
		errs.Add("rules.play", "required", "must be true for a shortest or longest play")
	}
	if r.MinPlaySeconds > r.longestPlay() {
		errs.Add("rules.minPlaySeconds", "range", "must not be more than maxPlaySeconds")
	}
}

// longestPlay returns how long a play may last, in seconds.
func (r *Rules) longestPlay() int64 {
	if r.MaxPlaySeconds == 0 {
		return defaultPlaySeconds
	}
	return r.MaxPlaySeconds
}

// mayWrite reports whether a writer may send scores.
func (d *Definition) mayWrite(w Writer) bool { return slices.Contains(d.Writers, w) }

// isOfPlayersAlone reports whether only players may send scores.
func (d *Definition) isOfPlayersAlone() bool {
	return len(d.Writers) == 1 && d.Writers[0] == WriterPlayers
}

// entriesExpectedPerShard returns how many entries a shard of a board with maxEntries has when it
// is full and its players are spread evenly, 0 without maxEntries.
func (d *Definition) entriesExpectedPerShard() int64 {
	if d.MaxEntries == nil {
		return 0
	}
	return *d.MaxEntries / int64(d.Shards)
}

// shardOf returns the shard in which all of a player's entries are.
func (d *Definition) shardOf(userID int64) int { return int(userID % int64(d.Shards)) }

// Patch is a change of a definition; an absent member stays as it is.
type Patch struct {
	Name         *string                 `json:"name,omitzero"`
	Writers      *Writers                `json:"writers,omitzero"`
	Rules        wire.Nullable[Rules]    `json:"rules,omitzero"`
	Schedule     wire.Nullable[Schedule] `json:"schedule,omitzero"`
	GraceSeconds *int64                  `json:"graceSeconds,omitzero"`
	KeepSeasons  *int64                  `json:"keepSeasons,omitzero"`
	Segments     *[]string               `json:"segments,omitzero"`
	MaxEntries   wire.Nullable[int64]    `json:"maxEntries,omitzero"`
	League       wire.Nullable[League]   `json:"league,omitzero"`
	Prizes       wire.Nullable[Prizes]   `json:"prizes,omitzero"`
	Metadata     wire.RawJSON            `json:"metadata,omitzero"`
	Effective    EffectiveFrom           `json:"effective,omitzero" given:"nonzero"`
}

// EffectiveFrom is the time from which a patch applies.
type EffectiveFrom string

// All values of EffectiveFrom.
const (
	EffectiveNextSeason EffectiveFrom = "next_season" // the default
	EffectiveNow        EffectiveFrom = "now"         // in the season that is open, too
)

// patchMember is a member of a patch that may be given.
type patchMember struct {
	name    string
	isGiven bool
}

func (p *Patch) isNow() bool { return p.Effective == EffectiveNow }

// check returns invalid_request for an unknown EffectiveFrom, and for a member that cannot change
// in an open season. The bounds and prizes of a season are promised, and its cohorts and segments
// are part of key names.
func (p *Patch) check() error {
	var errs apierror.FieldErrors
	if p.Effective != "" {
		validate.Word(&errs, "effective", p.Effective, EffectiveNextSeason, EffectiveNow)
	}
	for _, m := range []patchMember{
		{"schedule", p.Schedule.IsGiven},
		{"graceSeconds", p.GraceSeconds != nil},
		{"segments", p.Segments != nil},
		{"league", p.League.IsGiven},
		{"prizes", p.Prizes.IsGiven},
	} {
		if m.isGiven && p.isNow() {
			errs.Add(m.name, "range", "cannot change in a season that is open")
		}
	}
	return errs.Err()
}

// decidingMembers returns the members of a patch that decide who gets prizes, and when.
func (p *Patch) decidingMembers() (names []string) {
	for _, m := range []patchMember{
		{"writers", p.Writers != nil},
		{"rules", p.Rules.IsGiven},
		{"schedule", p.Schedule.IsGiven},
		{"graceSeconds", p.GraceSeconds != nil},
		{"maxEntries", p.MaxEntries.IsGiven},
		{"prizes", p.Prizes.IsGiven},
	} {
		if m.isGiven {
			names = append(names, m.name)
		}
	}
	return names
}

// merge returns the definition with a patch.
func (d Definition) merge(p Patch) Definition {
	wire.Set(&d.Name, p.Name)
	wire.Set(&d.Writers, p.Writers)
	p.Rules.SetIn(&d.Rules)
	p.Schedule.SetIn(&d.Schedule)
	wire.Set(&d.GraceSeconds, p.GraceSeconds)
	if p.KeepSeasons != nil {
		d.KeepSeasons = p.KeepSeasons
	}
	wire.Set(&d.Segments, p.Segments)
	p.MaxEntries.SetIn(&d.MaxEntries)
	p.League.SetIn(&d.League)
	p.Prizes.SetIn(&d.Prizes)
	if p.Metadata != nil {
		d.Metadata = p.Metadata
	}
	return d
}
