package webhooks

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/dialguard"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/store/feed"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Ledger reads the ledgers of games. ledgerstore.Store implements it.
type Ledger interface {
	// LastEntry returns the number of a game's last entry, 0 for none.
	LastEntry(ctx context.Context, gameID int64) (int64, error)
	// ReadEntries returns entries after one number and up to another, a page of them at most.
	ReadEntries(ctx context.Context, gameID, after, upTo int64) ([]ledger.Entry, error)
}

// Deps is what webhooks need of other packages.
type Deps struct {
	// SetActiveCount notes how many active webhooks a game has; with one or more its rooms have a
	// feed.
	SetActiveCount func(ctx context.Context, gameID int64, count int) error
	Ledger         Ledger
	// EncodeEntry returns an entry of a ledger as JSON, as the export of a ledger has it.
	EncodeEntry func(ctx context.Context, gameID int64, e ledger.Entry) ([]byte, error)
	Trail       *trail.Service
	Log         *slog.Logger
}

// Options is what the installation demands of webhooks and allows them.
type Options struct {
	SigningKeys [][]byte       // the first encrypts secrets, all decrypt; required
	Networks    []netip.Prefix // that may be sent to beside the internet
	FreeShards  int            // number of shards for free rooms
	Dialer      *net.Dialer    // connects; nil for the usual one
	// Now returns the time by which events are tried again and given up; nil for time.Now.
	Now func() time.Time
}

// Service keeps webhooks and delivers to them. It is safe for concurrent use.
type Service struct {
	store       store
	deps        Deps
	guard       dialguard.Guard
	freeShards  int
	now         func() time.Time
	signingKeys atomic.Pointer[[][]byte]
	sender      *sender
	metrics     metrics
	tests       chan struct{} // has one for each test under way
}

// New returns a service on a store. It panics without a signing key.
func New(db *redisdb.DB, deps Deps, o Options) *Service {
	s := &Service{
		store: store{db}, deps: deps, guard: dialguard.Guard{Networks: o.Networks}, freeShards: o.FreeShards, now: o.Now,
		tests: make(chan struct{}, maxTestsAtOnce),
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.SetSigningKeys(o.SigningKeys)
	s.sender = newSender(cmp.Or(o.Dialer, &net.Dialer{}), s.allows)
	return s
}

// attemptsToDefine bounds how often a change is tried that meets another one.
const attemptsToDefine = 8

// errNotFound is the answer for a webhook that a game does not have.
var errNotFound = apierror.WebhookNotFound

// Create makes a webhook, which gets what happens from now on, and returns it with its secret, only
// this once. It is for staff. It returns forbidden, game_not_found, invalid_request and, when the
// game has 8 webhooks, limit_reached.
func (s *Service) Create(ctx context.Context, caller principal.Caller, gameID int64, in Input) (Created, error) {
	if err := authorize(caller, gameID); err != nil {
		return Created{}, err
	}
	id, secret := newID(), newSecret()
	d := definition{
		URL: in.URL, Kinds: in.Kinds, Description: in.Description, Active: in.Active == nil || *in.Active,
		CreatedAt: s.now().UTC().Truncate(time.Millisecond), Version: 1,
	}
	err := s.check(&d)
	if err != nil {
		return Created{}, err
	}
	if d.Secret, err = s.encrypt(gameID, id, secret); err != nil {
		return Created{}, err
	}
	heads, err := s.readEnds(ctx, gameID)
	if err != nil {
		return Created{}, err
	}
	// The positions first: without them a leader would begin with what is stored. And the leader looks
	// at the game: who makes it look may die after the definition.
	if err := s.store.rewind(ctx, gameID, id, heads); err != nil {
		return Created{}, err
	}
	if err := s.store.addGame(ctx, gameID); err != nil {
		return Created{}, err
	}
	text, err := encodeDefinition(d)
	if err == nil {
		err = s.store.define(ctx, gameID, id, "", text)
	}
	if err != nil {
		return Created{}, errors.Join(err, s.store.remove(ctx, gameID, id))
	}
	if err := s.noteActive(ctx, gameID); err != nil {
		return Created{}, err
	}
	return Created{s.viewOf(gameID, id, d, state{}), secret}, nil
}

// newID returns the id of a new webhook.
func newID() string { return "wh_" + strings.ToLower(rand.Text()) }

// readEnds returns the position after everything that has happened in a game, by feed.
func (s *Service) readEnds(ctx context.Context, gameID int64) (map[string]string, error) {
	heads, err := s.store.readHeads(ctx, gameID, s.shards(gameID))
	if err != nil {
		return nil, err
	}
	last, err := s.deps.Ledger.LastEntry(ctx, gameID)
	heads[KindMoney] = moneyPosition(last, "")
	return heads, err
}

func moneyPosition(number int64, nonce string) string {
	return strconv.FormatInt(number, 10) + "-" + nonce
}

// noteActive notes how many active webhooks a game has, for its feed.
func (s *Service) noteActive(ctx context.Context, gameID int64) error {
	webhooks, err := s.readGame(ctx, gameID)
	if err != nil {
		return err
	}
	return s.deps.SetActiveCount(ctx, gameID, countActive(webhooks))
}

func countActive(webhooks map[string]stored) (active int) {
	for _, d := range webhooks {
		if d.Active {
			active++
		}
	}
	return active
}

func authorize(caller principal.Caller, gameID int64) error {
	return caller.AuthorizeStaff(gameID, "webhooks")
}

func (s *Service) readGame(ctx context.Context, gameID int64) (map[string]stored, error) {
	games, err := s.store.readDefinitions(ctx, []int64{gameID})
	return games[gameID], err
}

func (s *Service) find(ctx context.Context, caller principal.Caller, gameID int64, id string) (stored, error) {
	if err := authorize(caller, gameID); err != nil {
		return stored{}, err
	}
	webhooks, err := s.readGame(ctx, gameID)
	if err != nil {
		return stored{}, err
	}
	d, ok := webhooks[id]
	if !ok {
		return stored{}, errNotFound
	}
	return d, nil
}

// List returns the webhooks of a game, oldest first. It is for staff. It returns forbidden and
// game_not_found.
func (s *Service) List(ctx context.Context, caller principal.Caller, gameID int64) ([]Webhook, error) {
	if err := authorize(caller, gameID); err != nil {
		return nil, err
	}
	webhooks, err := s.readGame(ctx, gameID)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(webhooks))
	for id := range webhooks {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(webhooks[a].CreatedAt.Compare(webhooks[b].CreatedAt), strings.Compare(a, b))
	})
	states, err := s.store.readStates(ctx, gameID, ids)
	if err != nil {
		return nil, err
	}
	list := make([]Webhook, len(ids))
	for i, id := range ids {
		list[i] = s.viewOf(gameID, id, webhooks[id].definition, states[i])
	}
	return list, nil
}

// Get returns a webhook. It is for staff. It returns forbidden, game_not_found and
// webhook_not_found.
func (s *Service) Get(ctx context.Context, caller principal.Caller, gameID int64, id string) (Webhook, error) {
	d, err := s.find(ctx, caller, gameID, id)
	if err != nil {
		return Webhook{}, err
	}
	return s.view(ctx, gameID, id, d.definition)
}

func (s *Service) view(ctx context.Context, gameID int64, id string, d definition) (Webhook, error) {
	states, err := s.store.readStates(ctx, gameID, []string{id})
	if err != nil {
		return Webhook{}, err
	}
	return s.viewOf(gameID, id, d, states[0]), nil
}

func (s *Service) viewOf(gameID int64, id string, d definition, st state) Webhook {
	w := Webhook{
		ID: id, GameID: gameID, URL: d.URL, Kinds: d.Kinds, Description: d.Description, Active: d.Active,
		CreatedAt: d.CreatedAt, Version: d.Version, State: OK, Parked: st.parked,
	}
	for _, p := range st.behind {
		if p.tries > 0 {
			w.WaitingRooms++
		}
	}
	if !st.oldest.IsZero() {
		w.LagSeconds = max(0, s.now().Sub(st.oldest).Round(time.Millisecond).Seconds())
	}
	lastError := st.lastError
	switch {
	case !d.Active:
		w.State, lastError = Disabled, cmp.Or(d.Disabled, lastError)
	case w.WaitingRooms > 0 || !st.failing.IsZero():
		w.State = Failing
	}
	if lastError != "" {
		w.LastError = &lastError
	}
	return w
}

// change replaces the definition of a webhook by what alter makes of it. An error of alter is
// returned as it is.
func (s *Service) change(
	ctx context.Context, gameID int64, id string, alter func(d *definition) error,
) (definition, error) {
	return redisdb.RetryStale(attemptsToDefine, func() (definition, error) {
		webhooks, err := s.readGame(ctx, gameID)
		if err != nil {
			return definition{}, err
		}
		was, ok := webhooks[id]
		if !ok {
			return definition{}, errNotFound
		}
		d := was.definition
		d.Version++
		if err := alter(&d); err != nil {
			return definition{}, err
		}
		text, err := encodeDefinition(d)
		if err != nil {
			return definition{}, err
		}
		return d, s.store.define(ctx, gameID, id, was.text, text)
	})
}

// Patch changes a webhook. One that becomes active goes on where it stood. It is for staff. It
// returns forbidden, game_not_found, webhook_not_found, invalid_request and version_conflict.
func (s *Service) Patch(
	ctx context.Context, caller principal.Caller, gameID int64, id string, p PatchInput,
) (Webhook, error) {
	if _, err := s.find(ctx, caller, gameID, id); err != nil {
		return Webhook{}, err
	}
	if p.Active != nil && *p.Active {
		if err := s.store.revive(ctx, gameID, id, s.now()); err != nil {
			return Webhook{}, err
		}
		if err := s.store.addGame(ctx, gameID); err != nil {
			return Webhook{}, err
		}
	}
	d, err := s.change(ctx, gameID, id, func(d *definition) error {
		if p.Version != 0 && p.Version != d.Version-1 {
			return apierror.VersionConflict
		}
		setIfGiven(&d.URL, p.URL)
		setIfGiven(&d.Kinds, p.Kinds)
		setIfGiven(&d.Description, p.Description)
		setIfGiven(&d.Active, p.Active)
		if p.Active != nil {
			d.Disabled = ""
		}
		return s.check(d)
	})
	if err != nil {
		return Webhook{}, err
	}
	if p.Active != nil {
		if err := s.noteActive(ctx, gameID); err != nil {
			return Webhook{}, err
		}
	}
	return s.view(ctx, gameID, id, d)
}

func setIfGiven[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Delete removes a webhook with everything that is stored of it. It is for staff. It returns
// forbidden, game_not_found, webhook_not_found, and version_conflict when somebody changes it.
func (s *Service) Delete(ctx context.Context, caller principal.Caller, gameID int64, id string) error {
	d, err := s.find(ctx, caller, gameID, id)
	if err != nil {
		return err
	}
	switch err := s.store.define(ctx, gameID, id, d.text, ""); {
	case errors.Is(err, redisdb.ErrStale):
		return apierror.VersionConflict
	case err != nil:
		return err
	}
	if err := s.noteActive(ctx, gameID); err != nil {
		return err
	}
	return s.store.remove(ctx, gameID, id)
}

// RotateSecret gives a webhook a new secret and returns it, only this once. Messages are signed
// with both for 24 hours. It is for staff. It returns forbidden, game_not_found and
// webhook_not_found.
func (s *Service) RotateSecret(ctx context.Context, caller principal.Caller, gameID int64, id string) (Created, error) {
	if err := authorize(caller, gameID); err != nil {
		return Created{}, err
	}
	secret := newSecret()
	encrypted, err := s.encrypt(gameID, id, secret)
	if err != nil {
		return Created{}, err
	}
	d, err := s.change(ctx, gameID, id, func(d *definition) error {
		d.Former, d.FormerUntil = d.Secret, s.now().UTC().Add(bothSecretsFor).Truncate(time.Millisecond)
		d.Secret = encrypted
		return nil
	})
	if err != nil {
		return Created{}, err
	}
	view, err := s.view(ctx, gameID, id, d)
	return Created{view, secret}, err
}

// maxTestsAtOnce bounds the tests under way on a node: each may take as long as a target lets it.
const maxTestsAtOnce = 8

// Test sends the message webhook.test now and returns what came back, whatever it is. It is for
// staff. It returns forbidden, game_not_found, webhook_not_found, rate_limited while too many tests
// are under way and, when the secret cannot be read, version_conflict with the reason.
func (s *Service) Test(ctx context.Context, caller principal.Caller, gameID int64, id string) (Attempt, error) {
	d, err := s.find(ctx, caller, gameID, id)
	if err != nil {
		return Attempt{}, err
	}
	select {
	case s.tests <- struct{}{}:
		defer func() { <-s.tests }()
	default:
		return Attempt{}, apierror.RateLimited.WithReason("at most %d tests may be under way on a node", maxTestsAtOnce)
	}
	signs, _, err := s.newSigner(gameID, id, d.definition)
	if err != nil {
		return Attempt{}, apierror.VersionConflict.WithReason("%s", err.Error())
	}
	now := s.now()
	m := message{
		id: id + "_test_" + strconv.FormatInt(now.UnixMilli(), 10), kind: "webhook.test", at: now,
		body: testBody(now, id),
	}
	outcome := s.sender.send(ctx, d.URL, signs, m, now)
	a := outcome.attempt(m, now)
	a.State, a.Try = TestAttempt, 1
	return a, s.store.addAttempt(context.WithoutCancel(ctx), gameID, id, a)
}

// Deliveries returns the newest attempts of a webhook, 200 at most, newest first: those of one
// state or, for "", of all; those that were given up are listed by their own state alone. It is for
// staff. It returns forbidden, game_not_found and webhook_not_found.
func (s *Service) Deliveries(
	ctx context.Context, caller principal.Caller, gameID int64, id string, of AttemptState,
) ([]Attempt, error) {
	if _, err := s.find(ctx, caller, gameID, id); err != nil {
		return nil, err
	}
	if of == Parked {
		parked, err := s.store.readParked(ctx, gameID, id)
		list := make([]Attempt, 0, maxAttemptsKept)
		for _, p := range parked[:min(len(parked), maxAttemptsKept)] {
			list = append(list, p.Attempt)
		}
		return list, err
	}
	list, err := s.store.readAttempts(ctx, gameID, id)
	if of != "" {
		list = slices.DeleteFunc(list, func(a Attempt) bool { return a.State != of })
	}
	return list, err
}

// Replay makes a webhook send again what is still stored: since a time, behind positions, or what
// was given up. It never goes forward: a feed that is behind it stays where it is. Receivers
// know events that they have by the ids. It is for staff. It returns
// forbidden, game_not_found, webhook_not_found and invalid_request.
func (s *Service) Replay(
	ctx context.Context, caller principal.Caller, gameID int64, id string, from Replay,
) (Webhook, error) {
	d, err := s.find(ctx, caller, gameID, id)
	if err != nil {
		return Webhook{}, err
	}
	given := 0
	for _, is := range []bool{from.From != nil, from.After != nil, from.Parked} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return Webhook{}, apierror.InvalidRequest.WithField("from", "required", "give one of from, positions and parked")
	case from.Parked:
		err = s.store.unpark(ctx, gameID, id)
	case from.After != nil:
		if err = s.checkPositions(gameID, from.After); err == nil {
			err = s.goBack(ctx, gameID, id, from.After)
		}
	default:
		var positions map[string]string
		if positions, err = s.findTime(ctx, gameID, *from.From); err == nil {
			err = s.goBack(ctx, gameID, id, positions)
		}
	}
	if err != nil {
		return Webhook{}, err
	}
	return s.view(ctx, gameID, id, d.definition)
}

// goBack puts the positions of a webhook back to some others, by feed.
func (s *Service) goBack(ctx context.Context, gameID int64, id string, positions map[string]string) error {
	states, err := s.store.readStates(ctx, gameID, []string{id})
	if err != nil {
		return err
	}
	back := map[string]string{}
	for name, position := range positions {
		// A leader only raises what was read here.
		if current, ok := states[0].positions[name]; !ok || numberOf(position) <= numberOf(current) {
			back[name] = position
		}
	}
	return s.store.rewind(ctx, gameID, id, back)
}

// checkPositions returns invalid_request for a feed that the game does not have, and for what is no
// position.
func (s *Service) checkPositions(gameID int64, positions map[string]string) error {
	var errs apierror.FieldErrors
	known := []string{KindMoney}
	for _, shard := range s.shards(gameID) {
		known = append(known, feed.Name(shard))
	}
	for name, position := range positions {
		field := "positions." + name
		if !slices.Contains(known, name) {
			errs.Add(field, "unknown", "is no feed of this game")
		}
		number, nonce, ok := strings.Cut(position, "-")
		if n, err := strconv.ParseInt(number, 10, 64); err != nil || n < 0 || !ok || strings.ContainsAny(nonce, "|") {
			errs.Add(field, "format", "must be a position such as 12-ab")
		}
	}
	return errs.Err()
}

const replayPage = 1000

// findTime returns the position behind the last event before a time in each feed, of the events
// that are stored.
func (s *Service) findTime(ctx context.Context, gameID int64, from time.Time) (map[string]string, error) {
	positions := map[string]string{}
	for _, shard := range s.shards(gameID) {
		name, after := feed.Name(shard), ""
		for {
			entries, gap, _, err := feed.Read(ctx, s.store.db, shard, gameID, after, replayPage)
			if err != nil {
				return nil, err
			}
			at := slices.IndexFunc(entries, func(e feed.Entry) bool { return !e.At.Before(from) })
			switch {
			case gap:
				after = ""
				continue
			case at > 0:
				after = entries[at-1].Position
			case at < 0 && len(entries) > 0:
				after = entries[len(entries)-1].Position
				continue
			}
			break
		}
		if after != "" {
			positions[name] = after
		} else {
			positions[name] = oldestPosition
		}
	}
	return s.findMoneyTime(ctx, gameID, from, positions)
}

// oldestPosition stands for the place before the oldest entry of a feed that is stored.
const oldestPosition = "oldest"

// findMoneyTime adds the position of the ledger.
func (s *Service) findMoneyTime(
	ctx context.Context, gameID int64, from time.Time, positions map[string]string,
) (map[string]string, error) {
	last, err := s.deps.Ledger.LastEntry(ctx, gameID)
	if err != nil {
		return nil, err
	}
	low, high := int64(0), last // the last entry before from is one of these, 0 for none
	for low < high {
		middle := (low + high + 1) / 2
		entries, err := s.deps.Ledger.ReadEntries(ctx, gameID, middle-1, middle)
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 && entries[0].At.Before(from) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	positions[KindMoney] = moneyPosition(low, "")
	return positions, nil
}
