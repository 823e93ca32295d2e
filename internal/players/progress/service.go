package progress

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Service stores and loads saves. It is safe for concurrent use.
type Service struct {
	store        store
	games        Games
	users        Users
	signer       atomic.Pointer[signer]
	log          *slog.Logger
	admitNew     func(gameID int64) error
	parsedByGame *cache.Cache[int64, parsedRules] // by game id
	lastingUsers *cache.Cache[int64, bool]        // ids of users who are known to be no guests
}

// Games returns the rules of each game: the text for ParseRules, or nothing. *games.Service is one.
type Games interface {
	ProgressRules(ctx context.Context, game int64) ([]byte, error)
}

// Users knows the players. Its methods return user_not_found. *users.Service is one.
type Users interface {
	// Game returns the game that a player belongs to.
	Game(ctx context.Context, userID int64) (int64, error)
	// IsGuest reports whether nobody vouches for a player. One who is no guest never becomes one.
	IsGuest(ctx context.Context, userID int64) (bool, error)
}

// Options configure the service.
type Options struct {
	// SigningKeys sign and verify stored saves: the first key signs, all verify. A key may be
	// removed once no save that it signed must be read again.
	SigningKeys [][]byte
	AdmitNew    func(gameID int64) error // is called before each write, which fails with its error; nil admits all
	Log         *slog.Logger             // gets violations of rules in shadow mode, and altered saves; nil discards them
}

const (
	maxCachedRules = 4096 // games; each has at most maxRules rules
	maxCachedUsers = 65_536
)

// New returns a service. It returns an error without a signing key.
func New(db *redisdb.DB, games Games, users Users, o Options) (*Service, error) {
	keys, err := newSigner(o.SigningKeys)
	if err == nil && len(keys) == 0 {
		err = errors.New("saves need a signing key")
	}
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.AdmitNew == nil {
		o.AdmitNew = func(int64) error { return nil }
	}
	s := &Service{
		store: store{db}, games: games, users: users, log: o.Log, admitNew: o.AdmitNew,
		parsedByGame: cache.New[int64, parsedRules]("progress_rules", maxCachedRules, 0),
		lastingUsers: cache.New[int64, bool]("progress_lasting_users", maxCachedUsers, 0),
	}
	s.signer.Store(&keys)
	return s, nil
}

// SetSigningKeys replaces the keys, as in Options. It returns an error without one, and then
// changes nothing.
func (s *Service) SetSigningKeys(signingKeys [][]byte) error {
	keys, err := newSigner(signingKeys)
	if err == nil && len(keys) == 0 {
		err = errors.New("saves need a signing key")
	}
	if err == nil {
		s.signer.Store(&keys)
	}
	return err
}

// ownSlot returns the slot of a player. It returns forbidden for other callers, invalid_request for
// a malformed name.
func ownSlot(caller principal.Caller, name string) (slotID, error) {
	if caller.Role != principal.Player {
		return slotID{}, apierror.Forbidden
	}
	var invalid apierror.FieldErrors
	checkSlotName(&invalid, name)
	return slotID{caller.UserID, caller.GameID, name}, invalid.Err()
}

// Save makes a state the newest version of the player's slot. It returns forbidden,
// payload_too_large, invalid_request; limit_reached, with the members "limit" (slots or bytes)
// and "max";
// version_conflict, with the stored save as member "current", when in.Version is not the newest;
// save_rejected, with the members "rule" and "path", when the state violates a rule of the game;
// save_tampered when the rules would compare with a version that was altered in the store.
func (s *Service) Save(ctx context.Context, caller principal.Caller, in SaveInput) (SaveInfo, error) {
	if caller.Role != principal.Player {
		return SaveInfo{}, apierror.Forbidden
	}
	in, err := in.normalized()
	if err != nil {
		return SaveInfo{}, err
	}
	rules, err := s.rulesOf(ctx, caller.GameID, in.Slot)
	if err != nil {
		return SaveInfo{}, err
	}
	id := slotID{caller.UserID, caller.GameID, in.Slot}
	message := messageDigest(in.MessageID, "save", in.BaseVersion, in.State)
	return s.saveVersion(ctx, id, rules, in, message)
}

// ReplaceState makes a state the newest version of a user's slot, for the server of the user's game
// or the operator. All rules of the game hold except serverOnly: members under that rule are stored
// as given. The same state over the same version is stored once, however often the same caller
// sends it. It returns forbidden for players, user_not_found for users of other games, and what
// Save returns.
func (s *Service) ReplaceState(ctx context.Context, caller principal.Caller, in ReplaceInput) (SaveInfo, error) {
	game, err := s.authorizeStaff(ctx, caller, in.UserID)
	if err != nil {
		return SaveInfo{}, err
	}
	save, err := SaveInput{Slot: in.Slot, State: in.State, BaseVersion: in.BaseVersion}.normalized()
	if err != nil {
		return SaveInfo{}, err
	}
	rules, err := s.rulesOf(ctx, game, in.Slot)
	if err != nil {
		return SaveInfo{}, err
	}
	id := slotID{in.UserID, game, in.Slot}
	message := messageDigest(caller.ActorID(), "replace", in.BaseVersion, save.State)
	return s.saveVersion(ctx, id, rules.withoutServerOnly(), save, message)
}

// authorizeStaff returns the user's game when the caller is its server or the operator. It returns
// forbidden for players and user_not_found for users of other games.
func (s *Service) authorizeStaff(ctx context.Context, caller principal.Caller, user int64) (game int64, err error) {
	if caller.Role != principal.Server && caller.Role != principal.Operator {
		return 0, apierror.Forbidden
	}
	game, err = s.users.Game(ctx, user)
	if err == nil && !caller.CanAccessGame(game) {
		err = apierror.UserNotFound
	}
	return game, err
}

// saveVersion stores a normalized state as the version after in.Version.
func (s *Service) saveVersion(
	ctx context.Context,
	id slotID,
	rules Rules,
	in SaveInput,
	message string,
) (SaveInfo, error) {
	for {
		read, err := s.store.read(ctx, id, rules.needPrevious(), 0)
		if err != nil {
			return SaveInfo{}, err
		}
		newest := read.newest
		w := versionWrite{baseVersion: in.BaseVersion, checkedVersion: notChecked, next: record{
			version: in.BaseVersion + 1, messageDigest: message, savedAtMS: read.nowMS, state: in.State,
			gainBucketsJSON: newest.gainBucketsJSON,
		}}
		if in.BaseVersion == newest.version {
			w.checkedVersion = newest.version
			if w.next, err = s.checkRules(ctx, id, rules, newest, w.next); err != nil {
				return SaveInfo{}, err
			}
		}
		saved, err := s.write(ctx, id, w, 0)
		switch {
		case errors.Is(err, redisdb.ErrStale): // the version that the caller named was stored since the read
		case errors.Is(err, apierror.VersionConflict):
			return SaveInfo{}, s.versionConflict(ctx, id)
		default:
			return saved, err
		}
	}
}

// checkRules returns the record as it is to be stored. It returns save_rejected or save_tampered.
func (s *Service) checkRules(ctx context.Context, id slotID, rules Rules, newest, next record) (record, error) {
	previous, err := s.previousState(ctx, id, rules, newest)
	if err != nil {
		return next, err
	}
	elapsedMS := max(0, next.savedAtMS-newest.savedAtMS)
	state, rates, violations := rules.check(previous, next.state, parseGainBuckets(newest.gainBucketsJSON), elapsedMS)
	if err := s.rejectionFor(ctx, id, violations); err != nil {
		return next, err
	}
	next.state, next.gainBucketsJSON = state, rates.String()
	return next, nil
}

// previousState returns the state that the rules compare with, nil when there is none. It returns
// save_tampered when the newest version was altered and an older one can be restored. When none
// can, the next save counts as a first one.
func (s *Service) previousState(ctx context.Context, id slotID, rules Rules, newest record) (wire.RawJSON, error) {
	switch {
	case newest.version == 0 || !rules.needPrevious():
		return nil, nil
	case s.signer.Load().verify(id, newest):
		return newest.state, nil
	}
	valid, err := s.logTamperedListValid(ctx, id, newest.version)
	if err == nil && len(valid) > 0 {
		err = tamperedError(newest.version, valid)
	}
	return nil, err
}

// rejectionFor logs the violations of rules in shadow mode and returns save_rejected for the
// others.
func (s *Service) rejectionFor(ctx context.Context, id slotID, violations []violation) error {
	rejected := apierror.SaveRejected
	for _, v := range violations {
		if v.shadow {
			s.log.LogAttrs(ctx, slog.LevelWarn, "a save violates a rule in shadow mode",
				slog.Int64("user", id.userID), slog.Int64("game", id.gameID), slog.String("slot", id.name),
				slog.String("rule", v.condition), slog.String("path", v.path), slog.String("reason", v.reason))
			continue
		}
		if len(rejected.FieldErrors) == 0 {
			rejected = rejected.WithReason("%s: %s (%s)", cmp.Or(v.path, id.name), v.reason, v.condition).
				WithMember("rule", v.condition).WithMember("path", v.path)
		}
		field := "slot"
		if v.path != "" {
			field = "state." + v.path
		}
		rejected = rejected.WithField(field, v.code, v.reason)
	}
	if len(rejected.FieldErrors) == 0 {
		return nil
	}
	return rejected
}

// progressEvent is the data of user.progress.
type progressEvent struct {
	Game      int64     `json:"gameId"`
	Slot      string    `json:"slot"`
	Version   int64     `json:"version"`
	SavedAt   time.Time `json:"savedAt"`
	SizeBytes int       `json:"size"`                  // bytes
	Restored  int64     `json:"restoredFrom,omitzero"` // the version whose state was restored
}

// write signs and stores a version. It returns payload_too_large, and what store.write returns.
func (s *Service) write(ctx context.Context, id slotID, w versionWrite, restoredFrom int64) (SaveInfo, error) {
	if err := s.admitNew(id.gameID); err != nil {
		return SaveInfo{}, err
	}
	w.next.sizeBytes = len(w.next.state)
	if w.next.sizeBytes > MaxStateBytes { // the serverOnly members were added to what the player sent
		return SaveInfo{}, errStateTooLarge
	}
	if w.next.gainBucketsJSON == "" {
		w.next.gainBucketsJSON = gainBuckets{}.String()
	}
	w.next = s.signer.Load().sign(id, w.next)
	event, err := wire.Marshal(progressEvent{
		Game: id.gameID, Slot: id.name, Version: w.next.version, SavedAt: w.next.savedAt(), SizeBytes: w.next.sizeBytes,
		Restored: restoredFrom,
	})
	if err != nil {
		return SaveInfo{}, fmt.Errorf("encode user.progress: %w", err)
	}
	w.eventMembers = event[len("{") : len(event)-len("}")]
	stored, err := s.writeWithinLimits(ctx, id, w)
	if err != nil {
		return SaveInfo{}, err
	}
	return stored.saved(id.name), nil
}

// writeWithinLimits stores a version and drops older ones when that is needed. Most saves need
// neither the kind of the player nor the other slots, so these are asked for when they matter.
func (s *Service) writeWithinLimits(ctx context.Context, id slotID, w versionWrite) (record, error) {
	r := room{maxBytes: MaxGuestTotalBytes}
	if _, lasting := s.lastingUsers.Get(id.userID); lasting {
		r.maxBytes = MaxTotalBytes
	}
	for {
		stored, err := s.store.write(ctx, id, w, r)
		var tooMany *tooManyBytesError
		if !errors.As(err, &tooMany) {
			return stored, err
		}
		r.otherSlots = tooMany.otherSlots
		if r.maxBytes == MaxGuestTotalBytes {
			guest, err := s.users.IsGuest(ctx, id.userID)
			if err != nil {
				return record{}, err
			}
			if !guest {
				s.lastingUsers.Add(id.userID, true)
				r.maxBytes = MaxTotalBytes
				continue
			}
		}
		r.mayDrop = true
	}
}

// versionConflict returns version_conflict with the stored save.
func (s *Service) versionConflict(ctx context.Context, id slotID) error {
	current, err := s.load(ctx, id)
	switch {
	case errors.Is(err, apierror.SlotNotFound):
		return apierror.VersionConflict.WithReason("the slot is empty: its first save has the version 0")
	case err != nil:
		return err
	}
	return apierror.VersionConflict.WithReason("the newest version is %d", current.Version).WithMember("current", current)
}

// Load returns the newest version of the player's slot. It returns forbidden, invalid_request,
// slot_not_found; save_tampered for a version that was altered in the store, with the member
// "intact": the revisions that Restore can bring back, newest first.
func (s *Service) Load(ctx context.Context, caller principal.Caller, slot string) (LoadedSave, error) {
	id, err := ownSlot(caller, slot)
	if err != nil {
		return LoadedSave{}, err
	}
	return s.load(ctx, id)
}

func (s *Service) load(ctx context.Context, id slotID) (LoadedSave, error) {
	read, err := s.store.read(ctx, id, true, 0)
	if err != nil {
		return LoadedSave{}, err
	}
	if read.newest.version == 0 {
		return LoadedSave{}, apierror.SlotNotFound
	}
	if !s.signer.Load().verify(id, read.newest) {
		return LoadedSave{}, s.logTampered(ctx, id, read.newest.version)
	}
	return read.newest.loaded(id.name), nil
}

// List returns the newest version of each of the player's slots, ordered by name. It returns
// forbidden.
func (s *Service) List(ctx context.Context, caller principal.Caller) ([]SaveInfo, error) {
	if caller.Role != principal.Player {
		return nil, apierror.Forbidden
	}
	return s.store.list(ctx, caller.UserID, caller.GameID)
}

// ListOf is List for the server of the user's game and the operator. It returns forbidden for
// players and user_not_found for users of other games.
func (s *Service) ListOf(ctx context.Context, caller principal.Caller, user int64) ([]SaveInfo, error) {
	game, err := s.authorizeStaff(ctx, caller, user)
	if err != nil {
		return nil, err
	}
	return s.store.list(ctx, user, game)
}

// LoadOf is Load for the server of the user's game and the operator. It returns what ListOf and
// Load return.
func (s *Service) LoadOf(ctx context.Context, caller principal.Caller, user int64, slot string) (LoadedSave, error) {
	game, err := s.authorizeStaff(ctx, caller, user)
	if err != nil {
		return LoadedSave{}, err
	}
	var invalid apierror.FieldErrors
	checkSlotName(&invalid, slot)
	if err := invalid.Err(); err != nil {
		return LoadedSave{}, err
	}
	return s.load(ctx, slotID{user, game, slot})
}

// DeleteAll deletes all saves of the calling player in the player's game. Repeating it changes
// nothing. It returns forbidden to everybody but players.
func (s *Service) DeleteAll(ctx context.Context, caller principal.Caller) error {
	if caller.Role != principal.Player {
		return apierror.Forbidden
	}
	return s.store.deleteAll(ctx, caller.UserID, caller.GameID)
}

// History returns the kept versions of the player's slot, newest first, without reading their
// states: whether one was altered is known when it is restored. It returns forbidden,
// invalid_request, slot_not_found.
func (s *Service) History(ctx context.Context, caller principal.Caller, slot string) ([]Revision, error) {
	id, err := ownSlot(caller, slot)
	if err != nil {
		return nil, err
	}
	records, err := s.store.history(ctx, id)
	if err == nil && len(records) == 0 {
		err = apierror.SlotNotFound
	}
	return revisionsOf(records), err
}

func revisionsOf(records []record) []Revision {
	revisions := make([]Revision, len(records))
	for i, r := range records {
		revisions[i] = Revision{Version: r.version, SavedAt: r.savedAt(), SizeBytes: r.sizeBytes}
	}
	return revisions
}

// logTampered logs that a version was altered and returns save_tampered.
func (s *Service) logTampered(ctx context.Context, id slotID, version int64) error {
	valid, err := s.logTamperedListValid(ctx, id, version)
	if err != nil {
		return err
	}
	return tamperedError(version, valid)
}

// logTamperedListValid logs that a version was altered and returns the revisions with a valid
// signature.
func (s *Service) logTamperedListValid(ctx context.Context, id slotID, version int64) ([]Revision, error) {
	s.log.LogAttrs(
		ctx,
		slog.LevelError,
		"a save was altered in the store, or its signing key is gone",
		slog.Int64(
			"user",
			id.userID,
		),
		slog.Int64("game", id.gameID),
		slog.String("slot", id.name),
		slog.Int64("version", version),
	)
	records, err := s.store.historyWithStates(ctx, id)
	records = slices.DeleteFunc(records, func(r record) bool { return !s.signer.Load().verify(id, r) })
	return revisionsOf(records), err
}

func tamperedError(version int64, valid []Revision) error {
	return apierror.SaveTampered.WithReason("version %d was altered in the store", version).
		WithMember("version", version).WithMember("intact", valid)
}

// Restore makes the state of an older version of the player's slot the newest version. The rules of
// the game hold as if the player had saved that state now: a version that was accepted once may
// have more than a player can still have. serverOnly members stay as they are in the newest
// version. When the newest version was altered, the old one is compared with itself. It returns
// forbidden,
// invalid_request, slot_not_found, save_version_not_found, save_tampered, save_rejected.
func (s *Service) Restore(ctx context.Context, caller principal.Caller, in RestoreInput) (SaveInfo, error) {
	if caller.Role != principal.Player {
		return SaveInfo{}, apierror.Forbidden
	}
	var invalid apierror.FieldErrors
	checkSlotName(&invalid, in.Slot)
	if in.Version < 1 {
		invalid.Add("version", "range", "must be a version that history lists")
	}
	if err := invalid.Err(); err != nil {
		return SaveInfo{}, err
	}
	rules, err := s.rulesOf(ctx, caller.GameID, in.Slot)
	if err != nil {
		return SaveInfo{}, err
	}
	if in.MessageID == "" {
		in.MessageID = rand.Text()
	}
	for {
		saved, err := s.restoreOnce(ctx, slotID{caller.UserID, caller.GameID, in.Slot}, rules, in)
		// After another save since the read, that save is part of the history and this version follows
		// it.
		if !errors.Is(err, redisdb.ErrStale) && !errors.Is(err, apierror.VersionConflict) {
			return saved, err
		}
	}
}

// restoreOnce tries to restore a version over the newest one. It returns redisdb.ErrStale or
// version_conflict when another version was stored since it read the slot.
func (s *Service) restoreOnce(ctx context.Context, id slotID, rules Rules, in RestoreInput) (SaveInfo, error) {
	read, err := s.store.read(ctx, id, true, in.Version)
	if err != nil {
		return SaveInfo{}, err
	}
	newest, old := read.newest, read.other
	message := func(base int64) string {
		return messageDigest(in.MessageID, fmt.Sprint("restore ", in.Version), base, nil)
	}
	switch {
	case newest.version == 0:
		return SaveInfo{}, apierror.SlotNotFound
	case newest.messageDigest == message(newest.version-1): // the same message made the newest version
		return newest.saved(id.name), nil
	case old.version == 0:
		return SaveInfo{}, apierror.SaveVersionNotFound.WithReason("the slot keeps no version %d", in.Version)
	case !s.signer.Load().verify(id, old):
		return SaveInfo{}, s.logTampered(ctx, id, old.version)
	}
	current := newest
	if !s.signer.Load().verify(id, newest) {
		current = old
	}
	state, rates, violations := rules.check(current.state, old.state, parseGainBuckets(current.gainBucketsJSON),
		max(0, read.nowMS-current.savedAtMS))
	if err := s.rejectionFor(ctx, id, violations); err != nil {
		return SaveInfo{}, err
	}
	next := record{
		version: newest.version + 1, messageDigest: message(newest.version), savedAtMS: read.nowMS,
		state: state, gainBucketsJSON: rates.String(),
	}
	return s.write(ctx, id, versionWrite{baseVersion: newest.version, checkedVersion: newest.version, next: next},
		in.Version)
}

// messageDigest identifies a message by all that it asks for, so that only the same message is a
// repetition. A message without an id equals no other, except the copies of it that the client
// library sends to Redis after a lost reply.
func messageDigest(id, verb string, base int64, state []byte) string {
	if id == "" {
		id = rand.Text()
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d %s %s %d ", len(id), id, verb, base)
	_, _ = h.Write(state)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// parsedRules are the rules of a game with the text that they were parsed from.
type parsedRules struct {
	text  string
	rules Rules
}

// rulesOf returns the current rules of a game that hold in a slot. Rules that cannot be parsed are
// an internal error: the player did nothing wrong, and nothing is saved until the game's settings
// are corrected.
func (s *Service) rulesOf(ctx context.Context, game int64, slot string) (Rules, error) {
	raw, err := s.games.ProgressRules(ctx, game)
	if err != nil {
		return Rules{}, err
	}
	if known, ok := s.parsedByGame.Get(game); ok && known.text == string(raw) {
		return known.rules.inSlot(slot), nil
	}
	rules, err := ParseRules(raw)
	if err != nil {
		return Rules{}, fmt.Errorf("parse the rules of game %d: %s", game, err)
	}
	s.parsedByGame.Add(game, parsedRules{text: string(raw), rules: rules})
	return rules.inSlot(slot), nil
}
