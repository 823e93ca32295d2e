package tournaments

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/text"
	"github.com/parlor-games/parlor/internal/base/validate"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/rooms"
)

// CreateInput is a request for a new tournament. An absent member has the default that its comment
// names. A member that the format does not have must be absent.
type CreateInput struct {
	Name         string             `json:"name"`
	Format       Format             `json:"format"`                                // required
	EntryTokenID int64              `json:"entryTokenId,omitzero" given:"nonzero"` // required with a fee or a prize
	EntryFee     wallet.AmountInput `json:"entryFee,omitzero" given:"nonzero"`     // default: 0
	AddedPrize   *AddedPrizeInput   `json:"addedPrize,omitzero"`
	RakeBps      *int               `json:"rakeBps,omitzero"` // the operator's to give; default: the game's rake
	Payout       []int              `json:"payout,omitzero"`  // default: [10000]
	MinEntrants  *int               `json:"minEntrants,omitzero"`
	MaxEntrants  int                `json:"maxEntrants"` // required

	RegistrationOpensAt *time.Time `json:"registrationOpensAt,omitzero"` // default: now
	CheckInOpensAt      *time.Time `json:"checkInOpensAt,omitzero"`      // at registration or later; default: none
	StartsAt            *time.Time `json:"startsAt"`                     // required
	EndsAt              *time.Time `json:"endsAt,omitzero"`              // required of score

	Attempts *int        `json:"attempts,omitzero"` // score; default: 1
	Board    *BoardInput `json:"board,omitzero"`    // score

	Rounds              *int       `json:"rounds,omitzero"`         // swiss; default: by the number of entrants
	LateJoinRounds      *int       `json:"lateJoinRounds,omitzero"` // swiss; default: 0
	Room                *RoomInput `json:"room,omitzero"`
	Seeding             Seeding    `json:"seeding,omitzero" given:"nonzero"` // default: random
	NoShowSeconds       *int64     `json:"noShowSeconds,omitzero"`           // default: 120
	MatchTimeoutSeconds *int64     `json:"matchTimeoutSeconds,omitzero"`     // default: of the game's rooms
	Draws               Draws      `json:"draws,omitzero" given:"nonzero"`   // default: replay in a bracket, else half

	Disputes       Disputes `json:"disputes,omitzero" given:"nonzero"` // default: refund
	DisputeSeconds *int64   `json:"disputeSeconds,omitzero"`           // default: 86,400

	NoCheckIn  NoCheckIn    `json:"noCheckIn,omitzero" given:"nonzero"`  // default: refund
	Visibility Visibility   `json:"visibility,omitzero" given:"nonzero"` // default: public
	Metadata   wire.RawJSON `json:"metadata,omitzero"`                   // a JSON object; default: {}
}

// AddedPrizeInput is a prize that staff add to the pot. Both members are required.
type AddedPrizeInput struct {
	Amount wallet.AmountInput `json:"amount"`
	From   Funds              `json:"from"`
}

// BoardInput has the settings of the leaderboard of a score tournament.
type BoardInput struct {
	Order        leaderboards.Order    `json:"order,omitzero" given:"nonzero"`    // default: desc
	Operator     leaderboards.Operator `json:"operator,omitzero" given:"nonzero"` // default: best
	Decimals     int                   `json:"decimals,omitzero"`
	Writers      leaderboards.Writers  `json:"writers,omitzero"` // default: server
	Rules        *leaderboards.Rules   `json:"rules,omitzero"`   // package leaderboards checks the scores in it
	GraceSeconds int64                 `json:"graceSeconds,omitzero"`
}

// RoomInput has the settings of the rooms of matches.
type RoomInput struct {
	MaxPlayers *int            `json:"maxPlayers,omitzero"`                 // 2
	Metadata   wire.RawJSON    `json:"metadata,omitzero"`                   // default: {}
	SettledBy  rooms.SettledBy `json:"settlement,omitzero" given:"nonzero"` // default: server
}

// Terms are what the definition of a tournament depends on beside the request.
type Terms struct {
	Now          time.Time     // by the store's clock
	Token        *wallet.Token // of entryTokenId; nil when it names none
	RakeBps      int           // of the game
	MatchTimeout time.Duration // of the game's rooms
	IsOperator   bool
}

// Bounds of a tournament.
const (
	maxNameRunes    = 80
	maxMetadataKiB  = 4
	maxPayoutPlaces = 1_000
	maxPlayAttempts = 1_000
	maxRounds       = 64
	maxGraceSeconds = 86_400
	maxDecimals     = 6
	fullBps         = 10_000

	minNoShowSeconds      = 5
	maxNoShowSeconds      = 3_600
	defaultNoShowSeconds  = 120
	minDisputeSeconds     = 60
	maxDisputeSeconds     = 3 * 86_400
	defaultDisputeSeconds = 86_400

	minMatchSeconds = 1
	maxMatchSeconds = 30 * 86_400
	playersOfMatch  = 2

	maxAhead = 366 * 24 * time.Hour // from now to the start, and from the start to the end
)

// MaxEntrants returns how many players a tournament of a format may have, 0 for an unknown format.
func (f Format) MaxEntrants() int {
	switch f {
	case FormatScore:
		return 100_000
	case FormatSwiss:
		return 4_096
	case FormatElimination:
		return 1_024
	case FormatRoundRobin:
		return 32
	default:
		return 0
	}
}

// Prepare returns the definition of a new tournament, with defaults for absent members. It returns
// forbidden with every field that only the operator may set, invalid_request with every faulty
// field, and invalid_amount when every other field is valid.
func (in CreateInput) Prepare(t Terms) (Definition, error) {
	if err := in.authorize(t); err != nil {
		return Definition{}, err
	}
	var errs apierror.FieldErrors
	d := Definition{
		Name: in.Name, Format: in.Format, RakeBps: t.RakeBps, Payout: in.Payout, MaxEntrants: in.MaxEntrants,
		Visibility: in.Visibility, Metadata: in.Metadata,
	}
	name, err := text.CheckLine("name", in.Name, maxNameRunes)
	errs.Merge(err)
	d.Name = name
	validate.RequiredWord(&errs, "format", d.Format, FormatScore, FormatElimination, FormatSwiss, FormatRoundRobin)
	d.Visibility = cmp.Or(d.Visibility, Public)
	validate.Word(&errs, "visibility", d.Visibility, Public, Unlisted)
	d.Metadata = validate.Object(&errs, "metadata", in.Metadata, maxMetadataKiB)
	in.preparePayout(&d, &errs)
	in.prepareTimes(&d, t, &errs)
	if d.Format.MaxEntrants() > 0 { // else it is unknown, and so is what the format has
		in.prepareEntrants(&d, &errs)
		in.prepareScore(&d, &errs)
		in.prepareMatches(&d, t, &errs)
		in.prepareSwiss(&d, &errs)
	}
	amountErr := in.prepareMoney(&d, t, &errs)
	d.checkWriters(&errs)
	if err := errs.Err(); err != nil {
		return Definition{}, err
	}
	return d, amountErr
}

// authorize returns forbidden with what only the operator can give.
func (in CreateInput) authorize(t Terms) error {
	if t.IsOperator {
		return nil
	}
	forbidden := apierror.Forbidden
	if in.RakeBps != nil {
		forbidden = forbidden.WithField("rakeBps", "forbidden", "only the operator can set it")
	}
	if in.AddedPrize != nil && in.AddedPrize.From == FromHouse {
		forbidden = forbidden.WithField("addedPrize.from", "forbidden", "only the operator can pay from the house")
	}
	if len(forbidden.FieldErrors) == 0 {
		return nil
	}
	return forbidden
}

func (in CreateInput) prepareEntrants(d *Definition, errs *apierror.FieldErrors) {
	least := playersOfMatch
	if d.Format == FormatScore {
		least = 1
	}
	d.MinEntrants = 2
	if in.MinEntrants != nil {
		d.MinEntrants = *in.MinEntrants
	}
	validate.Range(errs, "maxEntrants", in.MaxEntrants, least, d.Format.MaxEntrants())
	if in.MinEntrants == nil {
		d.MinEntrants = min(d.MinEntrants, max(in.MaxEntrants, least))
	} else if d.MinEntrants < least || d.MinEntrants > max(in.MaxEntrants, least) {
		errs.Add("minEntrants", "range", "must be at least "+strconv.Itoa(least)+" and at most maxEntrants")
	}
}

func (in CreateInput) preparePayout(d *Definition, errs *apierror.FieldErrors) {
	if in.RakeBps != nil {
		d.RakeBps = *in.RakeBps
		validate.Range(errs, "rakeBps", d.RakeBps, 0, fullBps)
	}
	if in.Payout == nil {
		d.Payout = []int{fullBps}
		return
	}
	if most := min(maxPayoutPlaces, max(in.MaxEntrants, 1)); len(in.Payout) > most {
		errs.Add("payout", "range", fmt.Sprintf("must have at most %d places", most))
		return
	}
	sum := 0
	for i, bps := range in.Payout {
		if bps < 0 || bps > fullBps {
			errs.Add(fmt.Sprintf("payout[%d]", i), "range", "must be 0 to 10000 basis points")
			return
		}
		sum += bps
	}
	if sum != fullBps {
		errs.Add("payout", "sum", "must sum to 10000 basis points")
	}
}

// prepareTimes requires the order registration, check-in, start, end. Times count in milliseconds.
func (in CreateInput) prepareTimes(d *Definition, t Terms, errs *apierror.FieldErrors) {
	d.RegistrationOpensAt = t.Now.UTC().Truncate(time.Millisecond)
	if in.RegistrationOpensAt != nil && in.RegistrationOpensAt.After(t.Now) {
		d.RegistrationOpensAt = *toMillisecond(in.RegistrationOpensAt)
	}
	d.CheckInOpensAt, d.EndsAt = toMillisecond(in.CheckInOpensAt), toMillisecond(in.EndsAt)
	if c := d.CheckInOpensAt; c != nil && c.Before(t.Now) {
		d.CheckInOpensAt = &d.RegistrationOpensAt
	}
	if in.StartsAt == nil {
		errs.Add("startsAt", "required", "is required")
		return
	}
	d.StartsAt = *toMillisecond(in.StartsAt)
	switch {
	case !d.StartsAt.After(t.Now):
		errs.Add("startsAt", "range", "must be in the future")
	case d.StartsAt.Sub(t.Now) > maxAhead:
		errs.Add("startsAt", "range", "must be at most 366 days ahead")
	case !d.RegistrationOpensAt.Before(d.StartsAt):
		errs.Add("registrationOpensAt", "range", "must be before startsAt")
	}
	if c := d.CheckInOpensAt; c != nil && (c.Before(d.RegistrationOpensAt) || !c.Before(d.StartsAt)) {
		errs.Add("checkInOpensAt", "range", "must be after registrationOpensAt and before startsAt")
	}
	switch e := d.EndsAt; {
	case e == nil && d.Format == FormatScore:
		errs.Add("endsAt", "required", "is required of a score tournament")
	case e != nil && (!e.After(d.StartsAt) || e.Sub(d.StartsAt) > maxAhead):
		errs.Add("endsAt", "range", "must be after startsAt, by at most 366 days")
	}
	d.NoCheckIn = in.NoCheckIn
	switch {
	case d.CheckInOpensAt != nil:
		d.NoCheckIn = cmp.Or(d.NoCheckIn, NoCheckInRefund)
		validate.Word(errs, "noCheckIn", d.NoCheckIn, NoCheckInRefund, NoCheckInForfeit)
	case in.NoCheckIn != "":
		errs.Add("noCheckIn", "forbidden", "is for a tournament with checkInOpensAt")
	}
}

func toMillisecond(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	return new(at.UTC().Truncate(time.Millisecond))
}

// formatMember is a member that some formats have.
type formatMember struct {
	name    string
	isGiven bool
}

// forbidMembers adds an error for each member that is given.
func forbidMembers(errs *apierror.FieldErrors, formats string, members ...formatMember) {
	for _, m := range members {
		if m.isGiven {
			errs.Add(m.name, "forbidden", "is for "+formats)
		}
	}
}

func (in CreateInput) prepareScore(d *Definition, errs *apierror.FieldErrors) {
	if d.Format != FormatScore {
		forbidMembers(errs, "score tournaments",
			formatMember{"attempts", in.Attempts != nil}, formatMember{"board", in.Board != nil})
		return
	}
	d.Attempts = 1
	if in.Attempts != nil {
		d.Attempts = *in.Attempts
		validate.Range(errs, "attempts", d.Attempts, 1, maxPlayAttempts)
	}
	d.Board = &BoardSet{
		Order: leaderboards.Descending, Operator: leaderboards.Best, Writers: leaderboards.Writers{leaderboards.WriterServer},
	}
	if in.Board == nil {
		return
	}
	b := BoardSet(*in.Board)
	b.Order = cmp.Or(b.Order, leaderboards.Descending)
	b.Operator = cmp.Or(b.Operator, leaderboards.Best)
	if b.Writers == nil {
		b.Writers = d.Board.Writers
	}
	validate.Word(errs, "board.order", b.Order, leaderboards.Descending, leaderboards.Ascending)
	validate.Word(errs, "board.operator", b.Operator,
		leaderboards.Best, leaderboards.Last, leaderboards.Sum, leaderboards.Min, leaderboards.Max)
	validate.Range(errs, "board.decimals", b.Decimals, 0, maxDecimals)
	validate.Range(errs, "board.graceSeconds", b.GraceSeconds, 0, maxGraceSeconds)
	if b.Rules != nil && b.Rules.MaxSubmissions != 0 {
		errs.Add("board.rules.maxSubmissions", "forbidden", "is what attempts decides")
	}
	if b.Rules != nil && b.Decimals >= 0 && b.Decimals <= maxDecimals {
		leaderboards.CheckTournamentRules(errs, b.Rules, b.Decimals)
	}
	d.Board = &b
}

// checkWriters adds an error if the tournament cannot have these writers of scores. In a tournament
// with a fee or a prize scores are worth money, so players may send them only if rules bound them.
func (d *Definition) checkWriters(errs *apierror.FieldErrors) {
	b := d.Board
	if b == nil {
		return
	}
	for i, w := range b.Writers {
		field := fmt.Sprintf("board.writers[%d]", i)
		validate.RequiredWord(errs, field, w, leaderboards.WriterServer, leaderboards.WriterPlayers)
		if slices.Contains(b.Writers[:i], w) {
			errs.Add(field, "duplicate", "is there twice")
		}
	}
	if !slices.Contains(b.Writers, leaderboards.WriterServer) {
		errs.Add("board.writers", "required", "must name server")
	}
	if !slices.Contains(b.Writers, leaderboards.WriterPlayers) {
		if b.Rules != nil {
			errs.Add("board.rules", "range", "are for scores of players, whom writers does not name")
		}
		return
	}
	if d.hasStakes() {
		leaderboards.CheckRulesForPrizes(errs, "board.rules", b.Order, b.Rules)
	}
}

func (in CreateInput) prepareMatches(d *Definition, t Terms, errs *apierror.FieldErrors) {
	if !d.Format.HasMatches() {
		forbidMembers(errs, "tournaments with matches",
			formatMember{"room", in.Room != nil}, formatMember{"seeding", in.Seeding != ""},
			formatMember{"noShowSeconds", in.NoShowSeconds != nil},
			formatMember{"matchTimeoutSeconds", in.MatchTimeoutSeconds != nil}, formatMember{"draws", in.Draws != ""},
			formatMember{"disputes", in.Disputes != ""}, formatMember{"disputeSeconds", in.DisputeSeconds != nil})
		return
	}
	d.Seeding, d.Draws = in.Seeding, in.Draws
	d.Seeding = cmp.Or(d.Seeding, SeedRandom)
	if d.Seeding == SeedByRating {
		errs.Add("seeding", "unknown", "must be random or joined: there are no ratings yet")
	} else {
		validate.Word(errs, "seeding", d.Seeding, SeedRandom, SeedByJoined)
	}
	d.prepareDraws(errs)
	in.prepareDisputes(d, errs)
	d.NoShowSeconds = defaultNoShowSeconds
	if in.NoShowSeconds != nil {
		d.NoShowSeconds = *in.NoShowSeconds
		validate.Range(errs, "noShowSeconds", d.NoShowSeconds, minNoShowSeconds, maxNoShowSeconds)
	}
	d.MatchTimeoutSeconds = max(minMatchSeconds, int64(t.MatchTimeout/time.Second))
	if in.MatchTimeoutSeconds != nil {
		d.MatchTimeoutSeconds = *in.MatchTimeoutSeconds
		validate.Range(errs, "matchTimeoutSeconds", d.MatchTimeoutSeconds, minMatchSeconds, maxMatchSeconds)
	}
	in.prepareRoom(d, errs)
}

func (d *Definition) prepareDraws(errs *apierror.FieldErrors) {
	if d.Format == FormatElimination {
		d.Draws = cmp.Or(d.Draws, DrawReplay)
		validate.Word(errs, "draws", d.Draws, DrawReplay, DrawSeed)
		return
	}
	d.Draws = cmp.Or(d.Draws, DrawHalf)
	validate.Word(errs, "draws", d.Draws, DrawReplay, DrawSeed, DrawHalf)
}

func (in CreateInput) prepareDisputes(d *Definition, errs *apierror.FieldErrors) {
	d.Disputes, d.DisputeSeconds = in.Disputes, defaultDisputeSeconds
	d.Disputes = cmp.Or(d.Disputes, DisputesRefund)
	validate.Word(errs, "disputes", d.Disputes, DisputesRefund, DisputesReplay, DisputesVoid)
	if in.DisputeSeconds != nil {
		d.DisputeSeconds = *in.DisputeSeconds
		validate.Range(errs, "disputeSeconds", d.DisputeSeconds, minDisputeSeconds, maxDisputeSeconds)
	}
}

func (in CreateInput) prepareRoom(d *Definition, errs *apierror.FieldErrors) {
	d.Room = &RoomSet{MaxPlayers: playersOfMatch, Metadata: wire.RawJSON("{}"), SettledBy: rooms.SettledByServer}
	if in.Room == nil {
		return
	}
	if in.Room.MaxPlayers != nil {
		validate.Range(errs, "room.maxPlayers", *in.Room.MaxPlayers, playersOfMatch, playersOfMatch)
	}
	if in.Room.SettledBy != "" {
		d.Room.SettledBy = in.Room.SettledBy
		validate.Word(errs, "room.settlement", in.Room.SettledBy, rooms.SettledByServer, rooms.SettledByConsensus)
	}
	d.Room.Metadata = validate.Object(errs, "room.metadata", in.Room.Metadata, maxMetadataKiB)
}

func (in CreateInput) prepareSwiss(d *Definition, errs *apierror.FieldErrors) {
	if d.Format != FormatSwiss {
		forbidMembers(errs, "swiss tournaments",
			formatMember{"rounds", in.Rounds != nil}, formatMember{"lateJoinRounds", in.LateJoinRounds != nil})
		return
	}
	if in.Rounds != nil {
		d.Rounds = *in.Rounds
		validate.Range(errs, "rounds", d.Rounds, 1, maxRounds)
	}
	if in.LateJoinRounds != nil {
		d.LateJoinRounds = *in.LateJoinRounds
		most := maxRounds
		if in.Rounds != nil {
			most = max(d.Rounds-1, 0)
		}
		validate.Range(errs, "lateJoinRounds", d.LateJoinRounds, 0, most)
	}
}

// prepareMoney reads the amounts. An error in one of them is returned and not collected: it is
// invalid_amount, which the caller sees only when every other field is valid.
func (in CreateInput) prepareMoney(d *Definition, t Terms, errs *apierror.FieldErrors) (amountErr error) {
	if p := in.AddedPrize; p != nil {
		validate.RequiredWord(errs, "addedPrize.from", p.From, FromHouse, FromMint)
	}
	if in.EntryTokenID == 0 {
		fee, err := in.EntryFee.ToUnits(wallet.MaxDecimals)
		if in.AddedPrize != nil || in.EntryFee != "" && (err != nil || fee > 0) {
			errs.Add("entryTokenId", "required", "is required with a fee or a prize")
		}
		return nil
	}
	if in.EntryFee == "" && in.AddedPrize == nil {
		errs.Add("entryFee", "required", "is required with an entry token, or addedPrize instead of it")
		return nil
	}
	if t.Token == nil {
		return apierror.TokenNotFound
	}
	d.EntryTokenID = &t.Token.ID
	if in.EntryFee != "" {
		if d.EntryFeeUnits, amountErr = in.EntryFee.ToUnits(t.Token.Decimals); amountErr != nil {
			return apierror.InField("entryFee", amountErr)
		}
	}
	if p := in.AddedPrize; p != nil {
		units, err := p.Amount.ToPositiveUnits(t.Token.Decimals)
		if err != nil {
			return apierror.InField("addedPrize.amount", err)
		}
		d.AddedPrize = &PrizeUnits{units, p.From}
	}
	return d.checkPot()
}

// checkPot returns invalid_amount when a full tournament has a pot that no amount can state.
func (d *Definition) checkPot() error {
	most := wallet.MaxUnits - d.AddedPrizeUnits()
	if d.EntryFeeUnits > most/wallet.Units(max(d.MaxEntrants, 1)) {
		return apierror.InvalidAmount.WithReason("the pot of %d entrants is more than %d minor units",
			d.MaxEntrants, wallet.MaxUnits)
	}
	return nil
}
