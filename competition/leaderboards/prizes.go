package leaderboards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/validate"
	"github.com/parlor-games/parlor/internal/money/prizes"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Prizes are the prizes for the best players of a season. The pool is set aside when the season
// opens, and paid after the season is sealed and reviewed. The rest of the pool returns to where it
// came from.
type Prizes struct {
	TokenCode     string       `json:"tokenId,omitzero" given:"nonzero"` // of the pool; required with one
	Pool          AmountInput  `json:"pool,omitzero" given:"nonzero"`    // "": none, of assets alone
	From          prizes.Funds `json:"from" given:"nonzero"`             // default: house
	Table         []PrizeRow   `json:"table"`                            // by places that no two rows share
	ReviewSeconds int64        `json:"reviewSeconds,omitzero"`           // for which a sealed season is HELD
}

// PrizeRow is the prize of each of some places: an amount, a share of the pool, or pieces of an
// asset without a stock.
type PrizeRow struct {
	FromPlace int         `json:"fromPlace"` // from 1
	ToPlace   int         `json:"toPlace"`
	Prize     AmountInput `json:"prize,omitzero" given:"nonzero"`
	ShareBps  int         `json:"shareBps,omitzero" given:"nonzero"` // of the pool for each place; rounded down
	AssetID   int64       `json:"gameAssetId,omitzero" given:"nonzero"`
	Quantity  int64       `json:"quantity,omitzero" given:"nonzero"` // pieces; default: 1
}

// AmountInput is an amount of prizes as a request spells it; "" stands for a missing one.
type AmountInput string

// UnmarshalJSON takes a JSON number or string as it is. It returns invalid_amount for other types.
func (a *AmountInput) UnmarshalJSON(b []byte) error { return (*wallet.AmountInput)(a).UnmarshalJSON(b) }

// MarshalJSON returns the text as a JSON number when it is one, else as a string.
func (a AmountInput) MarshalJSON() ([]byte, error) { return ScoreInput(a).MarshalJSON() }

func (a AmountInput) toUnits(decimals int) (wallet.Units, error) {
	return wallet.AmountInput(a).ToUnits(decimals)
}

// Bounds of prizes.
const (
	maxPrizeRows     = 100
	maxPrizePlace    = 10_000
	maxReviewSeconds = 30 * 86_400
	maxPrizePieces   = 1_000_000
	// maxWinners bounds how many players a tie may bring a prize to.
	maxWinners = 20_000
)

func (p Prizes) withDefaults() *Prizes {
	p.From = cmp.Or(p.From, prizes.House)
	p.Table = slices.Clone(p.Table)
	for i := range p.Table {
		if row := &p.Table[i]; row.AssetID != 0 {
			row.Quantity = cmp.Or(row.Quantity, 1)
		}
	}
	return &p
}

// check adds an error for each field that is wrong whatever the token is.
func (p *Prizes) check(errs *apierror.FieldErrors) {
	validate.Word(errs, "prizes.from", p.From, prizes.House, prizes.Mint)
	validate.Range(errs, "prizes.reviewSeconds", p.ReviewSeconds, 0, maxReviewSeconds)
	if len(p.Table) < 1 || len(p.Table) > maxPrizeRows {
		errs.Add("prizes.table", "range", fmt.Sprintf("must have 1 to %d rows", maxPrizeRows))
		return
	}
	hasUnits, bps := false, 0
	for i, row := range p.Table {
		field := fmt.Sprintf("prizes.table[%d].", i)
		validate.Range(errs, field+"fromPlace", int64(row.FromPlace), 1, maxPrizePlace)
		validate.Range(errs, field+"toPlace", int64(row.ToPlace), int64(max(1, row.FromPlace)), maxPrizePlace)
		validate.Range(errs, field+"shareBps", int64(row.ShareBps), 0, wallet.FullBps)
		given := 0
		for _, is := range []bool{row.Prize != "", row.ShareBps != 0, row.AssetID != 0} {
			if is {
				given++
			}
		}
		if given != 1 {
			errs.Add(field+"prize", "required", "must have prize, shareBps or gameAssetId, and one of them alone")
		}
		if row.AssetID != 0 {
			validate.Range(errs, field+"quantity", row.Quantity, 1, maxPrizePieces)
		} else if row.Quantity != 0 {
			errs.Add(field+"quantity", "range", "is for an asset")
		}
		hasUnits, bps = hasUnits || row.AssetID == 0, bps+row.ShareBps*max(0, row.ToPlace-row.FromPlace+1)
		for _, before := range p.Table[:i] {
			if row.FromPlace <= before.ToPlace && before.FromPlace <= row.ToPlace {
				errs.Add(field+"fromPlace", "duplicate", "another row has some of these places")
				break
			}
		}
	}
	switch {
	case bps > wallet.FullBps:
		errs.Add("prizes.table", "range", "must not share more than the pool")
	case hasUnits && p.TokenCode == "":
		errs.Add("prizes.tokenId", "required", "is required for prizes that are no assets")
	case hasUnits && p.Pool == "":
		errs.Add("prizes.pool", "required", "is required for prizes that are no assets")
	case !hasUnits && (p.TokenCode != "" || p.Pool != ""):
		errs.Add("prizes.pool", "range", "is for prizes that are no assets")
	}
}

// checkPrizes checks the prizes of a definition against the token and the assets of its game, and
// spells their amounts as they are returned. It returns forbidden for funds that the caller may not
// use, and invalid_request with every faulty field.
func (s *Service) checkPrizes(ctx context.Context, caller principal.Caller, gameID int64, d *Definition) error {
	p := d.Prizes
	if p == nil {
		return nil
	}
	if s.prizes == nil {
		return apierror.InvalidRequest.WithField("prizes", "range", "are not available")
	}
	d.by = caller.ActorID()
	var errs apierror.FieldErrors
	if err := s.checkFeeds(ctx, &errs, gameID, d.Board); err != nil {
		return err
	}
	for i, row := range p.Table {
		if row.AssetID == 0 {
			continue
		}
		field := fmt.Sprintf("prizes.table[%d].gameAssetId", i)
		switch err := s.prizes.CheckAsset(ctx, gameID, row.AssetID); {
		case errors.Is(err, apierror.AssetNotFound):
			errs.Add(field, "unknown", "must be an asset of the game")
		case errors.Is(err, apierror.InvalidRequest):
			errs.Add(field, "range", "must be an asset without a stock")
		case err != nil:
			return err
		}
	}
	if p.TokenCode == "" {
		return errs.Err()
	}
	token, err := s.prizes.Token(ctx, gameID, p.TokenCode)
	if errors.Is(err, apierror.TokenNotFound) {
		errs.Add("prizes.tokenId", "unknown", "must be a token")
		return errs.Err()
	}
	if err != nil {
		return err
	}
	if err := s.prizes.CheckFunds(gameID, token, p.From, d.by); err != nil {
		return err
	}
	checkPool(&errs, p, token)
	return errs.Err()
}

// checkPool adds an error for each amount that the token cannot have, and for a table that pays
// more than its pool.
func checkPool(errs *apierror.FieldErrors, p *Prizes, token wallet.Token) {
	read := func(field string, amount *AmountInput) wallet.Units {
		units, err := wallet.AmountInput(*amount).ToPositiveUnits(token.Decimals)
		if e, ok := apierror.As(err); ok {
			errs.Add(field, "format", e.Detail)
			return 0
		}
		*amount = AmountInput(units.Decimal(token.Decimals))
		return units
	}
	pool := read("prizes.pool", &p.Pool)
	left := pool
	for i := range p.Table {
		row := &p.Table[i]
		each := wallet.Units(0)
		if row.Prize != "" {
			each = read(fmt.Sprintf("prizes.table[%d].prize", i), &row.Prize)
		} else if row.AssetID == 0 {
			each = wallet.ApplyBps(pool, row.ShareBps)
		}
		count := wallet.Units(row.ToPlace - row.FromPlace + 1)
		if each > left/count { // places × each would be more, without an overflow
			errs.Add("prizes.table", "range", "must not pay more than the pool")
			return
		}
		left -= each * count
	}
}

// ofPlaces returns what each place up to the last one of the table gets, by its number.
func (p *Prizes) ofPlaces(decimals int) (shares []wallet.Units, rows []*PrizeRow, err error) {
	pool := wallet.Units(0)
	if p.Pool != "" {
		if pool, err = p.Pool.toUnits(decimals); err != nil {
			return nil, nil, err
		}
	}
	last := 0
	for _, row := range p.Table {
		last = max(last, row.ToPlace)
	}
	shares, rows = make([]wallet.Units, last), make([]*PrizeRow, last)
	for i := range p.Table {
		row := &p.Table[i]
		each := wallet.ApplyBps(pool, row.ShareBps)
		if row.Prize != "" {
			if each, err = row.Prize.toUnits(decimals); err != nil {
				return nil, nil, err
			}
		}
		for place := row.FromPlace; place <= row.ToPlace; place++ {
			shares[place-1], rows[place-1] = each, row
		}
	}
	return shares, rows, nil
}

// prizeSource names the prizes of a season.
func (b *board) prizeSource(one *season) string {
	return "board:" + b.key + ":" + strconv.FormatInt(one.number, 10)
}

// tokenOf returns the token of prizes, the zero Token for those in assets alone.
func (s *Service) tokenOf(ctx context.Context, gameID int64, p *Prizes) (wallet.Token, error) {
	if p.TokenCode == "" {
		return wallet.Token{}, nil
	}
	return s.prizes.Token(ctx, gameID, p.TokenCode)
}

// isPromisedByOperator reports whether the operator promised the prizes of a definition. Early
// releases did not store who promised them; such prizes count as promised by the operator.
func (d *Definition) isPromisedByOperator() bool { return d.Prizes != nil && !prizes.IsServer(d.by) }

// authorizePromise returns forbidden to a server key that would do something to a board where the
// operator promised the prizes of a definition, or that is of a tournament.
func (b *board) authorizePromise(caller principal.Caller, act string, definitions ...*Definition) error {
	switch {
	case caller.Role == principal.Operator:
		return nil
	case isOfTournament(b.key):
		return apierror.Forbidden.WithReason("the leaderboard is that of a tournament: only the operator can %s", act)
	case slices.ContainsFunc(definitions, (*Definition).isPromisedByOperator):
		return apierror.Forbidden.WithReason("the operator promised the prizes: only the operator can %s", act)
	}
	return nil
}

// authorizePatch returns forbidden to a server key for each member of a patch that would change
// where prizes go that the operator promised in the definition that is patched.
func (b *board) authorizePatch(caller principal.Caller, p *Patch, definitions ...*Definition) error {
	err := b.authorizePromise(caller, "change it", definitions...)
	if e, ok := apierror.As(err); ok && !isOfTournament(b.key) {
		members := p.decidingMembers()
		for _, name := range members {
			e = e.WithField(name, "forbidden", "only the operator can change it, who promised the prizes")
		}
		if err = e; len(members) == 0 {
			err = nil
		}
	}
	return err
}

// fund sets the pool of a season aside, and reports whether it is.
func (s *Service) fund(ctx context.Context, b *board, one *season, nowMS int64) (bool, error) {
	d := b.definitionOf(one)
	token, err := s.tokenOf(ctx, b.gameID, d.Prizes)
	if err != nil {
		return false, err
	}
	pool := wallet.Units(0)
	if d.Prizes.Pool != "" {
		if pool, err = d.Prizes.Pool.toUnits(token.Decimals); err != nil {
			return false, err
		}
	}
	isFunded, err := s.prizes.FundSeason(ctx, b.gameID, b.prizeSource(one), token, pool, d.Prizes.From, d.by,
		prizes.Budget{Board: b.key, AtMS: nowMS, UntilMS: one.closes})
	if e, expected := apierror.As(err); expected && e.Status < 500 {
		// The server may mint no more today, or no longer: as a house that is too poor.
		slog.WarnContext(ctx, "the prizes of a season are not funded", "game", b.gameID, "board", b.key,
			"season", one.number, "error", err)
		return false, nil
	}
	return isFunded, err
}

// fundOpen funds the season that is open, when that was not done before. A season whose funds are
// missing is tried again until it closes, and so is one that began because the season before it was
// ended by hand: the prizes of that one were for the time until its scheduled end.
func (s *Service) fundOpen(ctx context.Context, b *board, nowMS int64, c *boardChange) error {
	one := b.seasonAt(nowMS)
	if one == nil || one.isFunded || one.outcome != undecided || b.definitionOf(one).Prizes == nil || s.prizes == nil {
		return nil
	}
	isFunded, err := s.fund(ctx, b, one, nowMS)
	if err == nil && isFunded {
		one.isFunded = true
		c.setSeason(*one)
	}
	return err
}

// beginReview decides how long a sealed season is in review.
func (s *Service) beginReview(ctx context.Context, b *board, one *season, nowMS int64) error {
	d := b.definitionOf(one)
	if d.Prizes == nil || s.prizes == nil || one.reviewMS != 0 {
		return nil
	}
	if !one.isFunded { // its row may be older than the account, which lies elsewhere
		prize, err := s.prizes.Read(ctx, b.gameID, b.prizeSource(one))
		if err != nil {
			return err
		}
		one.isFunded = prize.State == prizes.StateFunded
	}
	one.reviewMS = nowMS + d.Prizes.ReviewSeconds*1000
	return nil
}

// planOf returns the lines of the prize plan of a season. Tied players divide the units of their
// places, and each of them gets the assets of the place.
func (s *Service) planOf(ctx context.Context, b *board, one *season) ([]prizes.Line, error) {
	r := b.ranking(one)
	token, err := s.tokenOf(ctx, b.gameID, r.definition.Prizes)
	if err != nil {
		return nil, err
	}
	shares, rows, err := r.definition.Prizes.ofPlaces(token.Decimals)
	if err != nil {
		return nil, err
	}
	winners, err := s.readWinners(ctx, r, len(rows))
	if err != nil {
		return nil, err
	}
	places := make([]int, len(winners))
	for i, w := range winners {
		places[i] = i + 1
		if r.definition.Ties == TiesShared && i > 0 && w.prefix() == winners[i-1].prefix() {
			places[i] = places[i-1]
		}
	}
	units := wallet.SplitTies(shares, places)
	lines := make([]prizes.Line, len(winners))
	for i, w := range winners {
		lines[i] = prizes.Line{UserID: w.userID, Place: places[i], Units: units[i]}
		if row := rows[places[i]-1]; row != nil {
			lines[i].AssetID, lines[i].Quantity = row.AssetID, row.Quantity
		}
	}
	return slices.DeleteFunc(lines, func(l prizes.Line) bool { return l.Units == 0 && l.AssetID == 0 }), nil
}

// winnersAtOnce bounds the entries of one read.
const winnersAtOnce = 500

// readWinners returns the best entries of a season, as many as there are prizes, and those that are
// tied with the last one of them.
func (s *Service) readWinners(ctx context.Context, r ranking, count int) ([]standing, error) {
	var winners []standing
	for from := "-"; ; {
		members, err := s.store.slice(ctx, r, from, winnersAtOnce)
		if err != nil {
			return nil, err
		}
		for _, member := range members {
			w, err := decodeMember(r.definition, member)
			if err != nil {
				return nil, err
			}
			isTied := r.definition.Ties == TiesShared && len(winners) > 0 && w.prefix() == winners[len(winners)-1].prefix()
			if len(winners) >= count && !isTied || len(winners) == maxWinners {
				return winners, nil
			}
			winners = append(winners, w)
		}
		if len(members) < winnersAtOnce {
			return winners, nil
		}
		from = "(" + members[len(members)-1]
	}
}

// pay plans and pays the prizes of a season, as far as that was not done before, and returns what
// has become of them.
func (s *Service) pay(ctx context.Context, b *board, one *season) (outcome, error) {
	source := b.prizeSource(one)
	prize, err := s.prizes.Read(ctx, b.gameID, source)
	if err != nil {
		return undecided, err
	}
	switch prize.State {
	case prizes.StateNone: // the store lost the account, and with it what was set aside
		return voided, nil
	case prizes.StateVoid:
		return voided, nil
	case prizes.StateFunded:
		lines, err := s.planOf(ctx, b, one)
		if err != nil {
			return undecided, err
		}
		if err := s.prizes.Plan(ctx, b.gameID, source, lines); err != nil {
			return undecided, err
		}
	}
	if done, err := s.prizes.Pay(ctx, b.gameID, source); err != nil || !done {
		return undecided, err
	}
	return paid, nil
}

// payDue pays the seasons that are sealed and reviewed, in their order.
func (s *Service) payDue(ctx context.Context, b *board) error {
	if s.prizes == nil {
		return nil
	}
	now, err := s.store.nowToEnd(ctx)
	if err != nil {
		return err
	}
	for i := range b.seasons {
		if one := &b.seasons[i]; one.isPayable(now) {
			if err := s.paySeason(ctx, b, one); err != nil {
				return fmt.Errorf("pay season %d of the board %s: %w", one.number, b.key, err)
			}
		}
	}
	return nil
}

// paySeason pays the prizes of a season and stores that it did.
func (s *Service) paySeason(ctx context.Context, b *board, one *season) error {
	result, err := s.pay(ctx, b, one)
	if err != nil || result == undecided {
		return err
	}
	return s.setOutcome(ctx, b, one.number, result)
}

// setOutcome stores what has become of the prizes of a season.
func (s *Service) setOutcome(ctx context.Context, b *board, number int64, result outcome) error {
	_, err := s.change(ctx, b.gameID, b.key, func(b *board, _ int64) (c boardChange, err error) {
		if one := b.find(number); one != nil && one.outcome != result && one.outcome != paid {
			one.outcome = result
			c.setSeason(*one)
		}
		return c, nil
	})
	return err
}

// ApproveSeason ends the review of a season: its prizes are paid now. It is for staff, and for the
// operator alone where the operator promised the prizes. It returns season_not_found, and
// season_closed for a season that is not in review.
func (s *Service) ApproveSeason(
	ctx context.Context, caller principal.Caller, gameID int64, key string, number int64,
) (Season, error) {
	if err := s.authorizeManage(ctx, caller, gameID); err != nil {
		return Season{}, err
	}
	b, err := s.change(ctx, gameID, key, func(b *board, now int64) (c boardChange, err error) {
		one := b.find(number)
		if one == nil {
			return c, apierror.SeasonNotFound
		}
		if err := b.authorizePromise(caller, "approve the season", b.definitionOf(one)); err != nil {
			return c, err
		}
		switch {
		case one.outcome == approved || one.outcome == paid:
			return c, nil
		case !one.isHeld(now):
			return c, apierror.SeasonClosed.WithReason("no prizes of the season are in review")
		}
		one.outcome = approved
		c.setSeason(*one)
		return c, nil
	})
	if err != nil {
		return Season{}, err
	}
	if err := s.payDue(ctx, b); err != nil && !errors.Is(err, redisdb.ErrSkewed) { // else the leader pays later
		return Season{}, err
	}
	return s.readSeason(ctx, gameID, key, number)
}

// VoidSeason returns the pool of a season to where it came from: nobody gets a prize. It is for
// staff, and for the operator alone where the operator promised the prizes. It returns
// season_not_found, and season_closed when the season has no prizes, or its prizes are being paid.
func (s *Service) VoidSeason(
	ctx context.Context, caller principal.Caller, gameID int64, key string, number int64, reason string,
) (Season, error) {
	if err := s.authorizeManage(ctx, caller, gameID); err != nil {
		return Season{}, err
	}
	b, err := s.reload(ctx, gameID, key)
	if err != nil {
		return Season{}, err
	}
	one := b.find(number)
	if one == nil {
		return Season{}, apierror.SeasonNotFound
	}
	if err := b.authorizePromise(caller, "void the season", b.definitionOf(one)); err != nil {
		return Season{}, err
	}
	switch {
	case one.outcome == voided:
		return s.viewSeason(ctx, b, one)
	case !one.owesPrizes():
		return Season{}, apierror.SeasonClosed.WithReason("the season has no prizes that are not paid")
	}
	err = s.prizes.Void(ctx, gameID, b.prizeSource(one), reason)
	if errors.Is(err, prizes.ErrPaying) {
		return Season{}, apierror.SeasonClosed.WithReason("the prizes of the season are being paid")
	}
	if err != nil {
		return Season{}, err
	}
	if err := s.setOutcome(ctx, b, number, voided); err != nil {
		return Season{}, err
	}
	return s.readSeason(ctx, gameID, key, number)
}

// readSeason returns a season as it is now.
func (s *Service) readSeason(ctx context.Context, gameID int64, key string, number int64) (Season, error) {
	b, err := s.reload(ctx, gameID, key)
	if err != nil {
		return Season{}, err
	}
	one := b.find(number)
	if one == nil {
		return Season{}, apierror.SeasonNotFound
	}
	return s.viewSeason(ctx, b, one)
}

// returnPrizes returns the pools that a deleted board has set aside, and forgets its prizes. Prizes
// that are being paid are paid completely.
func (s *Service) returnPrizes(ctx context.Context, b *board) error {
	if s.prizes == nil {
		return nil
	}
	for i := range b.seasons {
		one := &b.seasons[i]
		if b.definitionOf(one).Prizes == nil {
			continue
		}
		source := b.prizeSource(one)
		err := s.prizes.Void(ctx, b.gameID, source, "the leaderboard was deleted")
		if errors.Is(err, prizes.ErrPaying) {
			_, err = s.prizes.Pay(ctx, b.gameID, source)
		}
		if err = cmp.Or(err, s.prizes.Forget(ctx, b.gameID, source)); err != nil {
			return err
		}
	}
	return s.prizes.ForgetBudget(ctx, b.gameID, b.key)
}

// forgetPrizes removes the plan of a season whose prizes are paid or returned.
func (s *Service) forgetPrizes(ctx context.Context, b *board, one *season) error {
	if s.prizes == nil || b.definitionOf(one).Prizes == nil {
		return nil
	}
	return s.prizes.ForgetPlan(ctx, b.gameID, b.prizeSource(one))
}
