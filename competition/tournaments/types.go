package tournaments

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/rooms"
)

// Format is the kind of competition: brackets, Swiss rounds, a table or scores.
type Format string

// All formats.
const (
	FormatScore       Format = "score"              // the best score of a leaderboard
	FormatElimination Format = "single_elimination" // who loses a match is out
	FormatSwiss       Format = "swiss"              // a number of rounds, against players with as many points
	FormatRoundRobin  Format = "round_robin"        // everybody against everybody
)

// HasMatches reports whether players meet in rooms.
func (f Format) HasMatches() bool { return f != FormatScore }

// Status is the state of a tournament.
type Status string

// All statuses. A tournament that is not SETTLING yet can become CANCELLING.
const (
	Announced    Status = "ANNOUNCED"    // registration is not open yet
	Registration Status = "REGISTRATION" // players join and leave
	CheckIn      Status = "CHECK_IN"     // and say that they are there
	Running      Status = "RUNNING"
	Settling     Status = "SETTLING" // places are final; the pot is being paid
	Finished     Status = "FINISHED"
	Cancelling   Status = "CANCELLING" // fees and the added prize are being returned
	Cancelled    Status = "CANCELLED"
)

// All statuses in the order of a tournament's life.
var statuses = []Status{
	Announced, Registration, CheckIn, Running, Settling, Finished, Cancelling, Cancelled,
}

// Ended reports whether nothing changes any more.
func (s Status) Ended() bool { return s == Finished || s == Cancelled }

// CancelReason is why a tournament was cancelled.
type CancelReason string

// All reasons of a cancelled tournament.
const (
	CancelledByOperator CancelReason = "operator"
	CancelledByServer   CancelReason = "server"
	Undersubscribed     CancelReason = "undersubscribed" // too few players at the start
	Expired             CancelReason = "expired"         // not decided at endsAt
	Unplayed            CancelReason = "unplayed"        // nobody came to any match, or nobody is left to be paid
)

// EntrantStatus is the state of one player in a tournament.
type EntrantStatus string

// All states of an entrant. A player who leaves before the start is no entrant any more.
const (
	EntrantJoined       EntrantStatus = "joined"
	EntrantCheckedIn    EntrantStatus = "checked_in"
	EntrantPlaying      EntrantStatus = "playing"
	EntrantOut          EntrantStatus = "out" // lost, left, or not checked in
	EntrantDisqualified EntrantStatus = "disqualified"
)

// MatchStatus is the state of a match.
type MatchStatus string

// All statuses of a match.
const (
	MatchWaiting MatchStatus = "WAITING" // for its players or for its room
	MatchReady   MatchStatus = "READY"   // the room is open; its players take their seats
	MatchPlaying MatchStatus = "PLAYING"
	MatchDecided MatchStatus = "DECIDED"
)

// MatchReason says how a match was decided.
type MatchReason string

// All reasons of a decided match.
const (
	Played         MatchReason = "played"
	Walkover       MatchReason = "walkover"       // the opponent did not come
	DoubleForfeit  MatchReason = "double_forfeit" // nobody came: both lose
	Bye            MatchReason = "bye"            // there is no opponent
	Disqualified   MatchReason = "disqualified"   // the opponent was disqualified
	ResolvedByHand MatchReason = "resolved"       // staff named the winner
	Refunded       MatchReason = "refunded"       // nobody decided it: both are out, with their fees back
)

// Seeding is the order in which players enter the draw.
type Seeding string

// All seedings.
const (
	SeedRandom   Seeding = "random"
	SeedByJoined Seeding = "joined" // who joined first is the first seed
	SeedByRating Seeding = "rating"
)

// Draws is the rule for a match without a winner.
type Draws string

// All kinds of draws.
const (
	DrawReplay Draws = "replay" // it is played again, up to MaxAttempts times, then as DrawSeed, or by lot
	DrawSeed   Draws = "seed"   // the higher seed wins
	DrawHalf   Draws = "half"   // half a point each
)

// Disputes is the rule for a match without a result: its players contradict each other and staff
// did not decide in time, or nobody reported a winner after all replays. It never depends on the
// seeds.
type Disputes string

// All rules for matches without a result.
const (
	DisputesRefund Disputes = "refund" // both players are out and get their fees back
	DisputesReplay Disputes = "replay" // it is played again, up to MaxAttempts times, then as DisputesRefund
	DisputesVoid   Disputes = "void"   // both lose it; the fees stay in the pot
)

// MaxAttempts bounds how often a match is played.
const MaxAttempts = 3

// NoCheckIn is the rule for the fee of an entrant who did not check in.
type NoCheckIn string

// All rules for entrants who did not check in.
const (
	NoCheckInRefund  NoCheckIn = "refund"
	NoCheckInForfeit NoCheckIn = "forfeit" // the fee stays in the pot
)

// Visibility decides which players find a tournament. Players can read an unlisted one by its id;
// only lists for staff show it.
type Visibility string

// All visibilities.
const (
	Public   Visibility = "public"
	Unlisted Visibility = "unlisted"
)

// Funds is the source of an added prize.
type Funds string

// All sources of an added prize.
const (
	FromHouse Funds = "house" // the operator's account
	FromMint  Funds = "mint"  // new units; of a server key they count against its daily limit
)

// Definition has the settings of a tournament. It never changes, but Rounds is set by the
// start. It is stored as JSON. Amounts are minor units of the entry token.
type Definition struct {
	Name          string       `json:"name"`
	Format        Format       `json:"format"`
	EntryTokenID  *int64       `json:"entryTokenId"` // nil: no fee and no prize
	EntryFeeUnits wallet.Units `json:"entryFeeAmount,string"`
	AddedPrize    *PrizeUnits  `json:"addedPrize"` // nil: none
	RakeBps       int          `json:"rakeBps"`    // the operator's part of the pot
	Payout        []int        `json:"payout"`     // basis points by place, sum 10,000
	MinEntrants   int          `json:"minEntrants"`
	MaxEntrants   int          `json:"maxEntrants"`

	RegistrationOpensAt time.Time  `json:"registrationOpensAt"`
	CheckInOpensAt      *time.Time `json:"checkInOpensAt"` // nil: nobody has to check in
	StartsAt            time.Time  `json:"startsAt"`
	EndsAt              *time.Time `json:"endsAt"` // score: the last play begins before; else cancelled (expired) at it

	Attempts int       `json:"attempts,omitzero"` // score: plays of each player
	Board    *BoardSet `json:"board,omitzero"`    // score

	Rounds              int      `json:"rounds,omitzero"`         // swiss: 0 for as many as the entrants need
	LateJoinRounds      int      `json:"lateJoinRounds,omitzero"` // swiss: players join until this round has ended
	Room                *RoomSet `json:"room,omitzero"`           // with matches
	Seeding             Seeding  `json:"seeding,omitzero"`        // with matches
	NoShowSeconds       int64    `json:"noShowSeconds,omitzero"`  // with matches: to take one's seat
	MatchTimeoutSeconds int64    `json:"matchTimeoutSeconds,omitzero"`
	Draws               Draws    `json:"draws,omitzero"`
	Disputes            Disputes `json:"disputes,omitzero"`       // with matches
	DisputeSeconds      int64    `json:"disputeSeconds,omitzero"` // with matches: for staff to decide a dispute

	NoCheckIn  NoCheckIn    `json:"noCheckIn,omitzero"` // with a check-in
	Visibility Visibility   `json:"visibility"`
	Metadata   wire.RawJSON `json:"metadata"` // a JSON object
}

// PrizeUnits is an added prize in minor units.
type PrizeUnits struct {
	Units wallet.Units `json:"units"`
	From  Funds        `json:"from"`
}

// AddedPrizeUnits returns the minor units of the added prize, 0 without one.
func (d *Definition) AddedPrizeUnits() wallet.Units {
	if d.AddedPrize == nil {
		return 0
	}
	return d.AddedPrize.Units
}

// hasStakes reports whether money hangs on the tournament: it has a fee or a prize.
func (d *Definition) hasStakes() bool { return d.EntryFeeUnits > 0 || d.AddedPrizeUnits() > 0 }

// playersMayWrite reports whether players send the scores of a score tournament. Builds before
// 2026-11-27 stored no writers, and all of their tournaments took scores of players: where money
// hangs on one, its scores must be bounded now.
func (d *Definition) playersMayWrite() bool {
	b := d.Board
	if b.Writers != nil {
		return slices.Contains(b.Writers, leaderboards.WriterPlayers)
	}
	isBounded := b.Rules != nil && (b.Order == leaderboards.Ascending && b.Rules.Min != nil ||
		b.Order != leaderboards.Ascending && b.Rules.Max != nil)
	return !d.hasStakes() || isBounded
}

// BoardSet has the settings of the leaderboard of a score tournament.
type BoardSet struct {
	Order        leaderboards.Order    `json:"order"`
	Operator     leaderboards.Operator `json:"operator"`
	Decimals     int                   `json:"decimals"`
	Writers      leaderboards.Writers  `json:"writers,omitzero"` // nil of older builds: server and players
	Rules        *leaderboards.Rules   `json:"rules,omitzero"`   // of scores of players
	GraceSeconds int64                 `json:"graceSeconds"`     // for plays that began before endsAt
}

// RoomSet has the settings of the rooms of matches.
type RoomSet struct {
	MaxPlayers int             `json:"maxPlayers"` // 2
	Metadata   wire.RawJSON    `json:"metadata"`   // a JSON object
	SettledBy  rooms.SettledBy `json:"settlement"`
}

// Tournament is a tournament as it is on the wire.
type Tournament struct {
	ID     int64 `json:"tournamentId"` // unique in its game
	GameID int64 `json:"gameId"`
	Definition

	EntryToken      *wallet.Token `json:"entryToken"`
	EntryFee        wallet.Amount `json:"entryFee"`
	AddedPrize      *Prize        `json:"addedPrize"` // instead of that of Definition
	AddedPrizeUnits wallet.Units  `json:"addedPrizeAmount,string"`
	Pot             wallet.Amount `json:"pot"` // fees and added prize
	PotUnits        wallet.Units  `json:"potAmount,string"`
	Rake            wallet.Amount `json:"rake"` // 0 before SETTLING
	RakeUnits       wallet.Units  `json:"rakeAmount,string"`

	Status       Status        `json:"status"`
	CancelReason *CancelReason `json:"reason"`
	Version      int64         `json:"version"` // from 1; each change adds 1
	Seq          int64         `json:"seq"`     // number of the last event
	Position     string        `json:"position"`
	Entrants     int           `json:"entrants"`
	CheckedIn    int           `json:"checkedIn"`
	Round        int           `json:"round"` // 0 before the first
	CreatedAt    time.Time     `json:"createdAt"`
	StartedAt    *time.Time    `json:"startedAt"`
	EndedAt      *time.Time    `json:"endedAt"` // finished or cancelled
}

// Prize is an added prize as it is on the wire.
type Prize struct {
	Amount wallet.Amount `json:"amount"`
	From   Funds         `json:"from"`
}

// setAmounts fills in the members of the wire that follow from the definition, the token and the
// pot. A tournament without a token has amounts of 0.
func (t *Tournament) setAmounts(token *wallet.Token, pot, rake wallet.Units) {
	decimals := 0
	if token != nil {
		decimals = token.Decimals
	}
	amount := func(u wallet.Units) wallet.Amount { return wallet.Amount{Units: u, Decimals: decimals} }
	t.EntryToken, t.EntryFee = token, amount(t.EntryFeeUnits)
	t.AddedPrizeUnits = t.Definition.AddedPrizeUnits()
	if p := t.Definition.AddedPrize; p != nil {
		t.AddedPrize = &Prize{amount(p.Units), p.From}
	}
	t.Pot, t.PotUnits = amount(pot), pot
	t.Rake, t.RakeUnits = amount(rake), rake
}

// Entrant is a player in a tournament.
type Entrant struct {
	User        users.Profile `json:"user"`
	Seed        *int          `json:"seed"` // from 1; nil before the start
	JoinedAt    time.Time     `json:"joinedAt"`
	CheckedInAt *time.Time    `json:"checkedInAt"`
	Status      EntrantStatus `json:"status"`
	// The player's result; nil before SETTLING. Place is also nil for a player who never played
	// and, in a score tournament, for a player who is not paid.
	Place  *int           `json:"place"`
	Payout *wallet.Amount `json:"payout"`
	Units  *wallet.Units  `json:"amount,string"`
}

// Match is one match of a round.
type Match struct {
	ID       string        `json:"matchId"` // "r2m5"
	Round    int           `json:"round"`   // from 1
	Players  []MatchPlayer `json:"players"` // the better seed first; fewer than two before they are known, and of a bye
	Status   MatchStatus   `json:"status"`
	RoomID   *string       `json:"roomId"`
	Attempt  int           `json:"attempt"`  // from 1; 0 before the first room
	WinnerID *int64        `json:"winnerId"` // nil: not decided, drawn, or a double forfeit
	Reason   *MatchReason  `json:"reason"`
	Deadline *time.Time    `json:"deadline"` // to take one's seat, then of the match
}

// MatchPlayer is a player of a match.
type MatchPlayer struct {
	UserID int64 `json:"userId"`
	Seed   int   `json:"seed"`
}

// MatchID names a match of a round; both count from 1.
func MatchID(round, number int) string {
	return "r" + strconv.Itoa(round) + "m" + strconv.Itoa(number)
}

var matchIDPattern = regexp.MustCompile(`^r([1-9][0-9]{0,3})m([1-9][0-9]{0,4})$`)

// ParseMatchID returns round and number of a match, false for any other text.
func ParseMatchID(id string) (round, number int, ok bool) {
	parts := matchIDPattern.FindStringSubmatch(id)
	if parts == nil {
		return 0, 0, false
	}
	round, _ = strconv.Atoi(parts[1])
	number, _ = strconv.Atoi(parts[2])
	return round, number, true
}

// Standing is a player's place in a tournament.
type Standing struct {
	Place     int                `json:"place"` // from 1; equal places are a tie
	User      users.Profile      `json:"user"`
	Points    leaderboards.Score `json:"points"` // of a score tournament: the score
	Wins      int                `json:"wins"`
	Draws     int                `json:"draws"`
	Losses    int                `json:"losses"`
	Tiebreaks Tiebreaks          `json:"tiebreaks"`
	Payout    *wallet.Amount     `json:"payout"` // nil before SETTLING
	Units     *wallet.Units      `json:"amount,string"`
}

// Tiebreaks order players with equal points, in the order of the fields. One that the format does
// not have is absent.
type Tiebreaks struct {
	Buchholz        *leaderboards.Score `json:"buchholz,omitzero"`        // swiss: cut 1
	DirectEncounter *leaderboards.Score `json:"directEncounter,omitzero"` // points against the tied
	SonnebornBerger *leaderboards.Score `json:"sonnebornBerger,omitzero"`
	Seed            int                 `json:"seed,omitzero"`
}

// Attempt is a play of a score tournament.
type Attempt struct {
	PlayID    string    `json:"playId"`
	StartedAt time.Time `json:"startedAt"`
	ExpiresAt time.Time `json:"expiresAt"`
	Left      int       `json:"attemptsLeft"`
}

// ListQuery filters a list of tournaments. Without a status it has all.
type ListQuery struct {
	GameID int64
	Status Status
	After  int64 // tournament id of the last one, 0 for the first page
	Limit  int
}

// check returns invalid_request for an unknown status.
func (q ListQuery) check() error {
	if q.Status == "" || slices.Contains(statuses, q.Status) {
		return nil
	}
	return apierror.InvalidRequest.WithField("status", "unknown", "is no status of a tournament")
}

// ChangeResult is the result of a change of a tournament.
type ChangeResult struct {
	Tournament Tournament // as it is now; not with an error
	Replayed   bool       // an earlier request with the same key made the change
}
