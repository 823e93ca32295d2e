package wallet

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/leader"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Service has the methods of the wallet. It is safe for concurrent use.
type Service struct {
	store     store
	players   Players
	tokens    *storeCache[string, Token] // by code, without their supply
	supplies  *storeCache[supplyKey, Units]
	codesByID *cache.Cache[int64, string] // token id → code, which never changes
	folding   *leader.Work
	afterFold func(ctx context.Context, gameIDs []int64) error // may be nil
	halter    Halter                                           // nil: nothing is halted
}

// Halter knows the games whose money is stopped. *moneyhalt.Service implements it.
type Halter interface {
	// Check returns store_unavailable when the money of a game is stopped.
	Check(gameID int64) error
}

// Players finds the game of a player; *users.Service implements it. A wallet is created with its
// first credit, so only package users knows which players exist, and in which game.
type Players interface {
	// Game returns the id of the player's game. It returns user_not_found.
	Game(ctx context.Context, userID int64) (int64, error)
}

// Options are the settings of the wallet.
type Options struct {
	ReceiptTTL time.Duration // how long the first result of a request with a key is kept; 0 means 24 h
	// Ledgers reads ledgers, with their archive. Nil: one without an archive.
	Ledgers *ledgerstore.Store
	Halter  Halter // nil: nothing is halted
	// AfterFold is called by the leader with the games that it has folded, when it is not nil.
	AfterFold func(ctx context.Context, gameIDs []int64) error
}

// defaultReceiptTTL is the least that clients are promised.
const defaultReceiptTTL = 24 * time.Hour

// New returns the wallet's methods on an open store. players may be nil for a service that only
// reads.
func New(db *redisdb.DB, players Players, o Options) *Service {
	ledgers := o.Ledgers
	if ledgers == nil {
		ledgers = ledgerstore.New(db, nil)
	}
	s := &Service{
		store:     store{db: db, receiptTTL: cmp.Or(o.ReceiptTTL, defaultReceiptTTL), ledgers: ledgers},
		players:   players,
		tokens:    newStoreCache[string, Token]("tokens", maxCachedTokens),
		supplies:  newStoreCache[supplyKey, Units]("token_supplies", maxCachedSupplies),
		codesByID: cache.New[int64, string]("token_codes", maxCachedTokens, 0),
		afterFold: o.AfterFold,
		halter:    o.Halter,
	}
	s.folding = leader.New(db, "totals", leader.EndsNothing, s.foldGames)
	return s
}

// LedgerChanged notes that a game's ledger may have grown. It must be called after every script
// that may have appended to it, also when its reply was lost; it costs next to nothing.
func (s *Service) LedgerChanged(gameID int64) { s.folding.Changed(gameID) }

// Run folds the ledgers of games into their totals, about once a second, until ctx ends. Every node
// runs it; one of them does the work.
func (s *Service) Run(ctx context.Context) error { return s.folding.Run(ctx) }

// foldGames folds what there is of some games, as their leader. It returns the games that may have
// more.
func (s *Service) foldGames(ctx context.Context, fence int64, gameIDs []int64) (unfinished []int64, err error) {
	unfinished = []int64{} // also with an error
	folded := gameIDs
	for len(gameIDs) > 0 && ctx.Err() == nil {
		left, foldErr := s.store.ledgers.FoldPages(ctx, &fence, gameIDs)
		err = errors.Join(err, foldErr)
		gameIDs, unfinished = left.More, append(unfinished, left.Stale...)
	}
	if s.afterFold != nil {
		err = errors.Join(err, s.afterFold(ctx, folded))
	}
	return append(unfinished, gameIDs...), err
}

// Fold adds all ledger entries of a game that its totals do not contain yet to the totals. It needs
// no leader, because folds by several nodes are exact too.
func (s *Service) Fold(ctx context.Context, gameID int64) error {
	return s.store.ledgers.Fold(ctx, gameID)
}

// CheckMoney returns store_unavailable when the money of a game is stopped. It must be called
// before every script that moves money.
func (s *Service) CheckMoney(gameID int64) error {
	if s.halter == nil {
		return nil
	}
	return s.halter.Check(gameID)
}

// CreateToken creates a token; the caller must be an operator. It returns forbidden,
// invalid_request, and token_exists when the code is taken.
func (s *Service) CreateToken(ctx context.Context, caller principal.Caller, d TokenDefinition) (Token, error) {
	if err := authorizeOperator(caller); err != nil {
		return Token{}, err
	}
	decimals, err := d.validate()
	if err != nil {
		return Token{}, err
	}
	games, err := s.checkGames(ctx, d.Games, decimals)
	if err != nil {
		return Token{}, err
	}
	if err := s.store.createToken(ctx, d, decimals, games); err != nil {
		return Token{}, err
	}
	s.tokens.remove(d.Code)
	return s.FindToken(ctx, 0, d.Code)
}

// PatchToken changes the description of a token and returns the token after it; the caller must be
// an operator. It returns forbidden, invalid_request, token_not_found.
func (s *Service) PatchToken(ctx context.Context, caller principal.Caller, code string, p TokenPatch) (Token, error) {
	if err := authorizeOperator(caller); err != nil {
		return Token{}, err
	}
	if err := p.validate(); err != nil {
		return Token{}, err
	}
	if !isCode(code) {
		return Token{}, apierror.TokenNotFound
	}
	var games *[]TokenGame
	if p.Games != nil {
		t, err := s.FindDefinition(ctx, code)
		if err != nil {
			return Token{}, err
		}
		list, err := s.checkGames(ctx, *p.Games, t.Decimals)
		if err != nil {
			return Token{}, err
		}
		games = &list
	}
	if err := s.store.patchToken(ctx, code, p, games); err != nil {
		return Token{}, err
	}
	s.tokens.remove(code)
	return s.FindToken(ctx, 0, code)
}

// checkGames returns the games that a token is given to, or invalid_request.
func (s *Service) checkGames(ctx context.Context, in []TokenGameInput, decimals int) ([]TokenGame, error) {
	if len(in) == 0 {
		return nil, nil
	}
	last, err := leader.CountGames(ctx, s.store.db)
	if err != nil {
		return nil, err
	}
	var v validator
	games := v.checkGames(in, decimals, last)
	return games, v.Err()
}

// FindToken returns a token by its code, with its supply in a game, in all games together when
// gameID is 0. Changes of other nodes are seen within a second. It returns token_not_found.
func (s *Service) FindToken(ctx context.Context, gameID int64, code string) (Token, error) {
	if t, ok := s.tokens.get(code); ok { // without the maps that several need
		if supply, ok := s.supplies.get(supplyKey{gameID, code}); ok {
			t.Supply = t.AmountOf(supply)
			return t, nil
		}
	}
	found, err := s.findTokens(ctx, gameID, code)
	if err != nil {
		return Token{}, err
	}
	if t, ok := found[code]; ok {
		return t, nil
	}
	return Token{}, apierror.TokenNotFound
}

// TokenByID is FindToken by the integer id of the token. It returns token_not_found.
func (s *Service) TokenByID(ctx context.Context, gameID, id int64) (Token, error) {
	code, ok := s.codesByID.Get(id)
	if !ok {
		var err error
		if code, err = s.store.readTokenCode(ctx, id); err != nil {
			return Token{}, err
		}
		s.codesByID.Add(id, code)
	}
	return s.FindToken(ctx, gameID, code)
}

// Tokens returns all tokens, by id, with their supply as FindToken does.
func (s *Service) Tokens(ctx context.Context, gameID int64) ([]Token, error) {
	codes, err := s.store.listTokenCodes(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.findTokens(ctx, gameID, codes...)
	if err != nil {
		return nil, err
	}
	tokens := slices.AppendSeq(make([]Token, 0, len(found)), maps.Values(found))
	slices.SortFunc(tokens, func(a, b Token) int { return cmp.Compare(a.ID, b.ID) })
	return tokens, nil
}

// ReadBalances returns every token that the player has or once had in a game, by token id.
func (s *Service) ReadBalances(ctx context.Context, gameID, userID int64) (Balances, error) {
	balances, err := s.store.readWallet(ctx, gameID, userID)
	if err != nil {
		return Balances{}, err
	}
	tokens, err := s.FindDefinitions(ctx, slices.Collect(maps.Keys(balances))...)
	if err != nil {
		return Balances{}, err
	}
	all := Balances{Balances: make([]Balance, 0, len(balances)), AsOf: time.Now().UTC()}
	for code, b := range balances {
		if t, ok := tokens[code]; ok {
			all.Balances = append(all.Balances, t.BalanceOf(b.Free, b.Held))
		}
	}
	slices.SortFunc(all.Balances, func(a, b Balance) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// CheckNothingHeld returns money_held while a stake of the player is in a room or a tournament that
// has not ended, with the code of its token as tokenId.
func (s *Service) CheckNothingHeld(ctx context.Context, gameID, userID int64) error {
	balances, err := s.ReadBalances(ctx, gameID, userID)
	if err != nil {
		return err
	}
	for _, b := range balances.Balances {
		if b.HeldUnits > 0 {
			return apierror.MoneyHeld.WithReason("%s %s are held", b.HeldUnits.Decimal(b.Decimals), b.Code).
				WithMember("tokenId", b.Code)
		}
	}
	return nil
}

// ReadBalance returns the player's balance of one token in a game, zero when the player never had
// any. It returns token_not_found.
func (s *Service) ReadBalance(ctx context.Context, gameID, userID int64, code string) (Balance, error) {
	t, err := s.FindDefinition(ctx, code)
	if err != nil {
		return Balance{}, err
	}
	balances, err := s.store.readWallet(ctx, gameID, userID)
	if err != nil {
		return Balance{}, err
	}
	return t.BalanceOf(balances[code].Free, balances[code].Held), nil
}

// Ledger returns a page of the player's own ledger in a game, newest first. It returns
// token_not_found.
func (s *Service) Ledger(ctx context.Context, gameID, userID int64, q LedgerQuery) (LedgerPage, error) {
	if q.TokenCode != "" {
		if _, err := s.FindDefinition(ctx, q.TokenCode); err != nil {
			return LedgerPage{}, err
		}
	}
	return s.store.readLines(ctx, gameID, userID, q)
}

// Credit mints an amount into a player's wallet. The caller must be an operator or the server of
// the player's game, to which the operator has given the token: beyond what the server may mint in
// a day it is limit_reached. The ledger shows its ActorID as the line's ref. It returns forbidden,
// user_not_found, token_not_found, invalid_request, idempotency_key_reused; and invalid_amount,
// also when the player would have more than MaxUnits, held stakes included. Errors that depend on
// the wallet are kept under the receipt; token_not_found is not, since tokens are no part of a
// game's economy.
func (s *Service) Credit(
	ctx context.Context, caller principal.Caller, in CreditInput, receipt idempotency.Receipt,
) (ChangeResult, error) {
	return s.change(ctx, caller, creditEntry, in, receipt)
}

// Debit burns an amount of what a player can spend. The caller must be an operator or the server of
// the player's game, to which the operator has given the token. It returns forbidden,
// user_not_found, token_not_found, invalid_request, invalid_amount, insufficient_funds,
// idempotency_key_reused, and keeps them as Credit does.
func (s *Service) Debit(
	ctx context.Context, caller principal.Caller, in DebitInput, receipt idempotency.Receipt,
) (ChangeResult, error) {
	return s.change(ctx, caller, debitEntry, CreditInput(in), receipt)
}

func (s *Service) change(
	ctx context.Context, caller principal.Caller, kind entryKind, in CreditInput, receipt idempotency.Receipt,
) (ChangeResult, error) {
	gameID, err := s.authorizeChange(ctx, caller, in.UserID)
	if err != nil {
		return ChangeResult{}, err
	}
	if err := CheckReason(in.Reason); err != nil {
		return ChangeResult{}, err
	}
	t, err := s.FindDefinition(ctx, in.TokenCode)
	if err != nil {
		return ChangeResult{}, err
	}
	limit, given := t.DayLimit(gameID)
	var dayLimit *Units
	if caller.Role == principal.Server {
		if !given {
			return ChangeResult{}, apierror.Forbidden.WithReason("the operator has not given %s to this game", t.Code).
				WithMember("tokenId", t.Code)
		}
		if kind == creditEntry {
			dayLimit = &limit
		}
	}
	units, err := in.Amount.ToPositiveUnits(t.Decimals)
	if err != nil {
		return ChangeResult{}, apierror.InField("amount", err)
	}
	if err := s.CheckMoney(gameID); err != nil {
		return ChangeResult{}, err
	}
	defer s.MintChanged(gameID, in.TokenCode)
	return s.store.change(ctx, kind, balanceChange{
		actorID: caller.ActorID(), gameID: gameID, userID: in.UserID, token: t,
		units: units, reason: in.Reason, dayLimit: dayLimit,
		receipt: receipt, nonce: idempotency.NewNonce(),
	})
}

// MintChanged notes that a script may have changed what exists of a token in a game.
func (s *Service) MintChanged(gameID int64, code string) {
	s.LedgerChanged(gameID)
	s.supplies.remove(supplyKey{gameID, code})
	s.supplies.remove(supplyKey{0, code})
}

// Grant mints the sign-up grant of a game into a player's wallet there, once for each player
// however often it is called. The caller must be the system, which knows that the player is one of
// the game. It returns forbidden, user_not_found, token_not_found, invalid_amount, and
// limit_reached when the grants of the game have minted as much today as their limit allows.
func (s *Service) Grant(ctx context.Context, caller principal.Caller, in GrantInput) error {
	switch {
	case caller.Role != principal.System:
		return apierror.Forbidden.WithReason("grants are given at sign-up only")
	case in.UserID < 1 || in.GameID < 1:
		return apierror.UserNotFound
	case in.Units < 0 || in.Units > MaxUnits:
		return apierror.InvalidAmount.WithReason("a grant is at most %s minor units", MaxUnits)
	}
	t, err := s.FindDefinition(ctx, in.TokenCode)
	if err != nil || in.Units == 0 {
		return err
	}
	if err := s.CheckMoney(in.GameID); err != nil {
		return errGrantWaits(err)
	}
	defer s.MintChanged(in.GameID, in.TokenCode)
	return s.store.grant(ctx, in, t)
}

// errGrantWaits returns the error of a grant in a game whose money is stopped. It is not retryable,
// so that the player is let in; the next sign-in gives the grant.
func errGrantWaits(stopped error) error {
	e, ok := apierror.As(stopped)
	if !ok {
		return stopped
	}
	waits := *e
	waits.Retryable = false
	return &waits
}

func authorizeOperator(caller principal.Caller) error {
	if caller.Role != principal.Operator {
		return apierror.Forbidden.WithReason("only an operator can change tokens")
	}
	return nil
}

// authorizeChange returns the player's game when the caller may credit or debit the player. To a
// server, a player of another game is not found, so that it learns nothing about other games.
func (s *Service) authorizeChange(
	ctx context.Context, caller principal.Caller, userID int64,
) (gameID int64, err error) {
	if caller.Role != principal.Operator && caller.Role != principal.Server {
		return 0, apierror.Forbidden.WithReason("only an operator or a game server can change balances")
	}
	if userID < 1 {
		return 0, apierror.UserNotFound
	}
	if gameID, err = s.players.Game(ctx, userID); err != nil {
		return 0, err
	}
	if !caller.CanAccessGame(gameID) {
		return 0, apierror.UserNotFound
	}
	return gameID, nil
}

// FindDefinition returns a token without its supply. It returns token_not_found.
func (s *Service) FindDefinition(ctx context.Context, code string) (Token, error) {
	found, err := s.FindDefinitions(ctx, code)
	if err != nil {
		return Token{}, err
	}
	t, ok := found[code]
	if !ok {
		return Token{}, apierror.TokenNotFound
	}
	return t, nil
}

// FindDefinitions returns those of the tokens that exist, by code, without their supply, from the
// cache where it has them. A cached one is safe for money: decimals never change.
func (s *Service) FindDefinitions(ctx context.Context, codes ...string) (map[string]Token, error) {
	found := make(map[string]Token, len(codes))
	if missing := s.tokens.getMany(slices.DeleteFunc(slices.Clone(codes), isNoCode), found); missing != nil {
		tokens, err := s.store.readTokens(ctx, slices.Collect(maps.Keys(missing)))
		if err != nil {
			return nil, err
		}
		s.tokens.add(tokens, missing)
		maps.Copy(found, tokens)
	}
	return found, nil
}

// findTokens is FindDefinitions with the supply in a game, in all games together when gameID is 0.
func (s *Service) findTokens(ctx context.Context, gameID int64, codes ...string) (map[string]Token, error) {
	found, err := s.FindDefinitions(ctx, codes...)
	if err != nil {
		return nil, err
	}
	wanted := make([]supplyKey, 0, len(found))
	for code := range found {
		wanted = append(wanted, supplyKey{gameID, code})
	}
	supplies := make(map[supplyKey]Units, len(found))
	if missing := s.supplies.getMany(wanted, supplies); missing != nil {
		read, err := s.store.readSupplies(ctx, gameID, slices.Collect(maps.Keys(missing)))
		if err != nil {
			return nil, err
		}
		s.supplies.add(read, missing)
		maps.Copy(supplies, read)
	}
	for code, t := range found {
		t.Supply = t.AmountOf(supplies[supplyKey{gameID, code}])
		found[code] = t
	}
	return found, nil
}
