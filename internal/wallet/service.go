package wallet

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/cache"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/redisdb"
)

// Service has the verbs of the wallet. It is safe for concurrent use.
type Service struct {
	store     store
	players   Players
	tokens    *tokenCache
	codesByID *cache.Cache[int64, string] // token id → code, which never changes
}

// Players finds the game of a player. *users.Service does: a wallet is created when something is
// first put into it, so only the users know who exists, and whose game's server may change the
// wallet.
type Players interface {
	// Game returns the id of the player's game. It returns user_not_found.
	Game(ctx context.Context, userID int64) (int64, error)
}

// Options are the settings of the wallet.
type Options struct {
	ReceiptTTL time.Duration // how long the first result of a request with a key is kept; 0 means 24 h
}

// defaultReceiptTTL is the least that clients are promised.
const defaultReceiptTTL = 24 * time.Hour

// New returns the wallet's verbs on an open store. players may be nil for a service that only
// reads.
func New(db *redisdb.DB, players Players, o Options) *Service {
	return &Service{
		store:     store{db: db, receiptTTL: cmp.Or(o.ReceiptTTL, defaultReceiptTTL)},
		players:   players,
		tokens:    newTokenCache(),
		codesByID: cache.New[int64, string]("token_codes", maxCachedTokens, 0),
	}
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
	if err := s.store.createToken(ctx, d, decimals); err != nil {
		return Token{}, err
	}
	s.tokens.remove(d.Code)
	return s.FindToken(ctx, d.Code)
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
	if err := s.store.patchToken(ctx, code, p); err != nil {
		return Token{}, err
	}
	s.tokens.remove(code)
	return s.FindToken(ctx, code)
}

// FindToken returns a token by its code. Changes of other nodes are seen within a second. It
// returns token_not_found.
func (s *Service) FindToken(ctx context.Context, code string) (Token, error) {
	found, err := s.findTokens(ctx, code)
	if err != nil {
		return Token{}, err
	}
	if t, ok := found[code]; ok {
		return t, nil
	}
	return Token{}, apierror.TokenNotFound
}

// TokenByID returns a token by its integer id. It returns token_not_found.
func (s *Service) TokenByID(ctx context.Context, id int64) (Token, error) {
	code, ok := s.codesByID.Get(id)
	if !ok {
		var err error
		if code, err = s.store.readTokenCode(ctx, id); err != nil {
			return Token{}, err
		}
		s.codesByID.Add(id, code)
	}
	return s.FindToken(ctx, code)
}

// Tokens returns all tokens, by id.
func (s *Service) Tokens(ctx context.Context) ([]Token, error) {
	codes, err := s.store.listTokenCodes(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.findTokens(ctx, codes...)
	if err != nil {
		return nil, err
	}
	tokens := slices.AppendSeq(make([]Token, 0, len(found)), maps.Values(found))
	slices.SortFunc(tokens, func(a, b Token) int { return cmp.Compare(a.ID, b.ID) })
	return tokens, nil
}

// ReadBalances returns every token that the player has or once had, by token id.
func (s *Service) ReadBalances(ctx context.Context, userID int64) (Balances, error) {
	balances, err := s.store.readWallet(ctx, userID)
	if err != nil {
		return Balances{}, err
	}
	tokens, err := s.findTokens(ctx, slices.Collect(maps.Keys(balances))...)
	if err != nil {
		return Balances{}, err
	}
	all := Balances{Balances: make([]Balance, 0, len(balances)), AsOf: time.Now().UTC()}
	for code, b := range balances {
		if t, ok := tokens[code]; ok {
			all.Balances = append(all.Balances, t.BalanceOf(b.free, b.held))
		}
	}
	slices.SortFunc(all.Balances, func(a, b Balance) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// ReadBalance returns the player's balance of one token, zero when the player never had any. It
// returns token_not_found.
func (s *Service) ReadBalance(ctx context.Context, userID int64, code string) (Balance, error) {
	t, err := s.FindToken(ctx, code)
	if err != nil {
		return Balance{}, err
	}
	balances, err := s.store.readWallet(ctx, userID)
	if err != nil {
		return Balance{}, err
	}
	return t.BalanceOf(balances[code].free, balances[code].held), nil
}

// Ledger returns a page of the player's own ledger, newest first. It returns token_not_found.
func (s *Service) Ledger(ctx context.Context, userID int64, q LedgerQuery) (LedgerPage, error) {
	if q.TokenCode != "" {
		if _, err := s.FindToken(ctx, q.TokenCode); err != nil {
			return LedgerPage{}, err
		}
	}
	page, err := s.store.readLines(ctx, userID, q)
	if err != nil {
		return LedgerPage{}, err
	}
	codes := make([]string, 0, 1)
	for _, l := range page.Lines {
		if !slices.Contains(codes, l.TokenCode) {
			codes = append(codes, l.TokenCode)
		}
	}
	tokens, err := s.findTokens(ctx, codes...)
	if err != nil {
		return LedgerPage{}, err
	}
	for i := range page.Lines {
		l := &page.Lines[i]
		t := tokens[l.TokenCode]
		l.Delta, l.BalanceAfter = t.AmountOf(l.DeltaUnits), t.AmountOf(l.BalanceAfterUnits)
	}
	return page, nil
}

// Credit mints an amount into a player's wallet. The caller must be an operator or the server of
// the player's game; the ledger shows its ActorID as the line's ref. It returns forbidden,
// user_not_found, token_not_found, invalid_request, idempotency_key_reused; and invalid_amount,
// also when the player would have more than MaxUnits, held stakes included.
func (s *Service) Credit(
	ctx context.Context, caller principal.Caller, in CreditInput, receipt idempotency.Receipt,
) (ChangeResult, error) {
	return s.change(ctx, caller, creditEntry, in, receipt)
}

// Debit burns an amount of what a player can spend. The caller must be an operator or the server of
// the player's game. It returns forbidden, user_not_found, token_not_found, invalid_request,
// invalid_amount, insufficient_funds, idempotency_key_reused.
func (s *Service) Debit(
	ctx context.Context, caller principal.Caller, in DebitInput, receipt idempotency.Receipt,
) (ChangeResult, error) {
	return s.change(ctx, caller, debitEntry, CreditInput(in), receipt)
}

func (s *Service) change(
	ctx context.Context, caller principal.Caller, kind entryKind, in CreditInput, receipt idempotency.Receipt,
) (ChangeResult, error) {
	if err := s.authorizeChange(ctx, caller, in.UserID); err != nil {
		return ChangeResult{}, err
	}
	var v validator
	v.checkReason(in.Reason)
	switch {
	case v.Err() != nil:
		return ChangeResult{}, v.Err()
	case !isCode(in.TokenCode):
		return ChangeResult{}, apierror.TokenNotFound
	}
	c := balanceChange{
		actorID: caller.ActorID(), userID: in.UserID, tokenCode: in.TokenCode, reason: in.Reason,
		receipt: receipt, nonce: idempotency.NewNonce(),
	}
	for {
		// A token that is not found is passed on: the script's error is kept under the receipt.
		found, err := s.findTokens(ctx, in.TokenCode)
		if err != nil {
			return ChangeResult{}, err
		}
		if t, ok := found[in.TokenCode]; ok {
			c.decimals = &t.Decimals
			if c.units, err = in.Amount.ToPositiveUnits(t.Decimals); err != nil {
				return ChangeResult{}, err
			}
		}
		result, stale, err := s.store.change(ctx, kind, c)
		s.tokens.remove(in.TokenCode) // its supply has changed, or it was created meanwhile
		if !stale {
			return result, err
		}
	}
}

// Grant mints the sign-up grant of a game into a player's wallet, once for each player and game
// however often it is called. The caller must be the system, which knows that the player exists. It
// returns forbidden, user_not_found, token_not_found, invalid_amount.
func (s *Service) Grant(ctx context.Context, caller principal.Caller, in GrantInput) error {
	switch {
	case caller.Role != principal.System:
		return apierror.Forbidden.WithReason("grants are given at sign-up only")
	case in.UserID < 1:
		return apierror.UserNotFound
	case !isCode(in.TokenCode):
		return apierror.TokenNotFound
	case in.Units < 0 || in.Units > MaxUnits:
		return apierror.InvalidAmount.WithReason("a grant is at most %s minor units", MaxUnits)
	case in.Units == 0:
		return nil
	}
	err := s.store.grant(ctx, in)
	s.tokens.remove(in.TokenCode)
	return err
}

func authorizeOperator(caller principal.Caller) error {
	if caller.Role != principal.Operator {
		return apierror.Forbidden.WithReason("only an operator can change tokens")
	}
	return nil
}

// authorizeChange returns nil when the caller may credit or debit the player. A player of another
// game is not found, so that a server learns nothing about other games.
func (s *Service) authorizeChange(ctx context.Context, caller principal.Caller, userID int64) error {
	if caller.Role != principal.Operator && caller.Role != principal.Server {
		return apierror.Forbidden.WithReason("only an operator or a game server can change balances")
	}
	if userID < 1 {
		return apierror.UserNotFound
	}
	gameID, err := s.players.Game(ctx, userID)
	if err != nil {
		return err
	}
	if !caller.CanAccessGame(gameID) {
		return apierror.UserNotFound
	}
	return nil
}

// findTokens returns those of the tokens that exist, by code, from the cache where it has them.
func (s *Service) findTokens(ctx context.Context, codes ...string) (map[string]Token, error) {
	found := make(map[string]Token, len(codes))
	missing, changes := s.tokens.get(codes, found)
	if len(missing) == 0 {
		return found, nil
	}
	tokens, err := s.store.readTokens(ctx, missing)
	if err != nil {
		return nil, err
	}
	s.tokens.add(tokens, changes)
	for _, t := range tokens {
		found[t.Code] = t
	}
	return found, nil
}
