package wallet

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/redisdb"
)

// Service is the verbs of the wallet. It is safe for concurrent use.
//
// A wallet comes to be when something is first put into it, and the wallet cannot know whether its player
// exists: whoever credits, debits or grants looks the player up before. Ids below 1 are nobody and refused.
type Service struct {
	store  store
	tokens tokenCache
	codes  sync.Map // token id → code; never changes
}

// Options are the wallet's settings.
type Options struct {
	ReceiptTTL time.Duration // how long the first answer to a keyed request is kept; 0 means 24 h
}

// defaultReceiptTTL is the least that the contract promises.
const defaultReceiptTTL = 24 * time.Hour

// New makes the wallet's verbs on an open store.
func New(db *redisdb.DB, o Options) *Service {
	return &Service{
		store:  store{db: db, receiptTTL: cmp.Or(o.ReceiptTTL, defaultReceiptTTL)},
		tokens: tokenCache{known: map[string]cachedToken{}},
	}
}

// CreateToken makes a token. It refuses token_exists when the code is taken.
func (s *Service) CreateToken(ctx context.Context, d TokenDefinition) (Token, error) {
	decimals, err := d.validate()
	if err != nil {
		return Token{}, err
	}
	if err := s.store.createToken(ctx, d, decimals); err != nil {
		return Token{}, err
	}
	s.tokens.forget(d.TokenID)
	return s.Token(ctx, d.TokenID)
}

// PatchToken changes what is said of a token, and answers it as it is then.
func (s *Service) PatchToken(ctx context.Context, code string, p TokenPatch) (Token, error) {
	if err := p.validate(); err != nil {
		return Token{}, err
	}
	if !isCode(code) {
		return Token{}, apierror.TokenNotFound
	}
	if err := s.store.patchToken(ctx, code, p); err != nil {
		return Token{}, err
	}
	s.tokens.forget(code)
	return s.Token(ctx, code)
}

// Token finds a token by its code, or refuses token_not_found. What other nodes changed is seen within a second.
func (s *Service) Token(ctx context.Context, code string) (Token, error) {
	found, err := s.lookup(ctx, code)
	if err != nil {
		return Token{}, err
	}
	if t, ok := found[code]; ok {
		return t, nil
	}
	return Token{}, apierror.TokenNotFound
}

// TokenByID finds a token by its integer id, or refuses token_not_found.
func (s *Service) TokenByID(ctx context.Context, id int64) (Token, error) {
	code, ok := s.codes.Load(id)
	if !ok {
		read, err := s.store.tokenCode(ctx, id)
		if err != nil {
			return Token{}, err
		}
		s.codes.Store(id, read)
		code = read
	}
	return s.Token(ctx, code.(string))
}

// Tokens lists all tokens by id.
func (s *Service) Tokens(ctx context.Context) ([]Token, error) {
	codes, err := s.store.tokenCodes(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.lookup(ctx, codes...)
	if err != nil {
		return nil, err
	}
	tokens := make([]Token, 0, len(found))
	for _, t := range found {
		tokens = append(tokens, t)
	}
	slices.SortFunc(tokens, func(a, b Token) int { return cmp.Compare(a.ID, b.ID) })
	return tokens, nil
}

// Balances lists every token that the player has or once had, by token id.
func (s *Service) Balances(ctx context.Context, user int64) (Balances, error) {
	purse, err := s.store.purse(ctx, user)
	if err != nil {
		return Balances{}, err
	}
	codes := make([]string, 0, len(purse))
	for code := range purse {
		codes = append(codes, code)
	}
	tokens, err := s.lookup(ctx, codes...)
	if err != nil {
		return Balances{}, err
	}
	all := Balances{Balances: make([]Balance, 0, len(purse)), AsOf: time.Now().UTC()}
	for code, units := range purse {
		if t, ok := tokens[code]; ok {
			all.Balances = append(all.Balances, t.Balance(units.free, units.held))
		}
	}
	slices.SortFunc(all.Balances, func(a, b Balance) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// Balance is the player's entry of one token, zero when there never was any of it. It refuses token_not_found.
func (s *Service) Balance(ctx context.Context, user int64, code string) (Balance, error) {
	t, err := s.Token(ctx, code)
	if err != nil {
		return Balance{}, err
	}
	purse, err := s.store.purse(ctx, user)
	if err != nil {
		return Balance{}, err
	}
	return t.Balance(purse[code].free, purse[code].held), nil
}

// Ledger is a page of the player's own lines, newest first. A token that does not exist is refused.
func (s *Service) Ledger(ctx context.Context, user int64, q LedgerQuery) (LedgerPage, error) {
	if q.TokenID != "" {
		if _, err := s.Token(ctx, q.TokenID); err != nil {
			return LedgerPage{}, err
		}
	}
	lines, next, err := s.store.lines(ctx, user, q)
	if err != nil {
		return LedgerPage{}, err
	}
	codes := make([]string, 0, 1)
	for _, l := range lines {
		if !slices.Contains(codes, l.TokenID) {
			codes = append(codes, l.TokenID)
		}
	}
	tokens, err := s.lookup(ctx, codes...)
	if err != nil {
		return LedgerPage{}, err
	}
	for i := range lines {
		l, t := &lines[i], tokens[lines[i].TokenID]
		l.Delta, l.BalanceAfter = t.Amount(l.DeltaAmount), t.Amount(l.AfterAmount)
	}
	return LedgerPage{Lines: lines, Next: next}, nil
}

// Credit mints an amount into a player's wallet. It refuses invalid_amount also where the player would have more than
// MaxUnits, held stakes included. who is the caller's name in receipts; the ledger shows it as the line's ref.
func (s *Service) Credit(ctx context.Context, who string, user int64, token string, amount AmountInput, reason string, rc idempotency.Receipt) (ChangeResult, error) {
	return s.change(ctx, credit, who, user, token, amount, reason, rc)
}

// Debit burns an amount of what a player can spend, or refuses insufficient_funds.
func (s *Service) Debit(ctx context.Context, who string, user int64, token string, amount AmountInput, reason string, rc idempotency.Receipt) (ChangeResult, error) {
	return s.change(ctx, debit, who, user, token, amount, reason, rc)
}

func (s *Service) change(ctx context.Context, way direction, who string, user int64, token string, amount AmountInput, reason string, rc idempotency.Receipt) (ChangeResult, error) {
	var f faults
	f.reason(reason)
	switch {
	case f.Err() != nil:
		return ChangeResult{}, f.Err()
	case user < 1:
		return ChangeResult{}, apierror.UserNotFound
	case !isCode(token):
		return ChangeResult{}, apierror.TokenNotFound
	}
	m := mutation{who: who, user: user, token: token, reason: reason, receipt: rc, nonce: idempotency.NewNonce()}
	for {
		// A token that is not there is the script's to refuse, so that the refusal is kept under the receipt.
		known, err := s.lookup(ctx, token)
		if err != nil {
			return ChangeResult{}, err
		}
		if t, ok := known[token]; ok {
			m.decimals = &t.Decimals
			if m.units, err = amount.Positive(t.Decimals); err != nil {
				return ChangeResult{}, err
			}
		}
		change, stale, err := s.store.change(ctx, way, m)
		if !stale {
			s.tokens.forget(token) // its supply has changed
			return change, err
		}
		s.tokens.forget(token)
	}
}

// Grant mints a game's welcome grant into a player's wallet, once for each player and game however often it is asked.
func (s *Service) Grant(ctx context.Context, user, game int64, token string, units Units) error {
	switch {
	case user < 1:
		return apierror.UserNotFound
	case !isCode(token):
		return apierror.TokenNotFound
	case units < 0 || units > MaxUnits:
		return apierror.InvalidAmount.WithReason("a grant is at most %s minor units", MaxUnits)
	case units == 0:
		return nil
	}
	err := s.store.grant(ctx, user, game, token, units)
	s.tokens.forget(token)
	return err
}

// Audit tells where all money is. It reads one hash that every money script keeps, so it is exact at every
// instant and takes the same time however many players there are.
func (s *Service) Audit(ctx context.Context) (Report, error) {
	totals, err := s.store.totals(ctx)
	if err != nil {
		return Report{}, err
	}
	return s.report(ctx, totals)
}

// lookup finds tokens by code: those that exist, from memory where it is fresh.
func (s *Service) lookup(ctx context.Context, codes ...string) (map[string]Token, error) {
	found := make(map[string]Token, len(codes))
	missing, changes := s.tokens.recall(codes, found)
	if len(missing) == 0 {
		return found, nil
	}
	read, err := s.store.readTokens(ctx, missing)
	if err != nil {
		return nil, err
	}
	s.tokens.remember(read, changes)
	for _, t := range read {
		found[t.TokenID] = t
	}
	return found, nil
}

// tokenFreshness bounds how late a node sees what another one changed.
const tokenFreshness = time.Second

// tokenCache remembers tokens for a short time. Only tokens that exist get in, so it is no larger than their number.
type tokenCache struct {
	mu      sync.Mutex
	known   map[string]cachedToken
	changes uint64 // counts what this node changed: an older read must not come back
}

type cachedToken struct {
	Token
	read time.Time
}

// recall puts what is known and fresh into found and answers what is not.
func (c *tokenCache) recall(codes []string, found map[string]Token) (missing []string, changes uint64) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, code := range codes {
		if t, ok := c.known[code]; ok && now.Sub(t.read) < tokenFreshness {
			found[code] = t.Token
		} else if isCode(code) {
			missing = append(missing, code)
		}
	}
	return missing, c.changes
}

func (c *tokenCache) remember(tokens []Token, changes uint64) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != changes {
		return
	}
	for _, t := range tokens {
		c.known[t.TokenID] = cachedToken{Token: t, read: now}
	}
}

func (c *tokenCache) forget(code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	delete(c.known, code)
}
