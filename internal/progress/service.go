package progress

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
)

// Service saves and loads.
type Service struct {
	store  store
	games  Games
	signer signer
	log    *slog.Logger
	parsed sync.Map // game id to *rulebook
}

// Games knows what each game demands of saves: the text for ParseRules, or nothing.
type Games interface {
	ProgressRules(ctx context.Context, game int64) ([]byte, error)
}

// Options are what a node must say about saves.
type Options struct {
	// SigningKeys sign and verify what is stored: the first signs, all verify. A key may go once no save signed by it is
	// to be read any more; each save and restore signs with the first.
	SigningKeys [][]byte
	Log         *slog.Logger // for breaches of rules in shadow mode and for altered saves
}

// New makes the service. It fails without a key.
func New(db *redisdb.DB, games Games, o Options) (*Service, error) {
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
	return &Service{store: store{db}, games: games, signer: keys, log: o.Log}, nil
}

// Save makes a state the newest version of its slot. It is refused with version_conflict, and the server's copy as the
// member "current", when in.Version is not the newest; with save_rejected, and the members "rule" and "path", when it breaks
// a rule of the game; with save_tampered when the rules would compare with a version that was altered in the store; with
// payload_too_large, invalid_request or slots_full.
func (s *Service) Save(ctx context.Context, user, game int64, in SaveInput) (Saved, error) {
	in, err := in.checked()
	if err != nil {
		return Saved{}, err
	}
	rules, err := s.rules(ctx, game)
	if err != nil {
		return Saved{}, err
	}
	if in.ByServer {
		rules = Rules{}
	}
	a := address{user, game, in.Slot}
	message := messageOf(in.MessageID, "save", in.Version, in.State)
	for {
		newest, _, now, err := s.store.read(ctx, a, rules.compare(), 0)
		if err != nil {
			return Saved{}, err
		}
		next := record{version: in.Version + 1, message: message, at: now, state: in.State, pace: newest.pace}
		judged := int64(-1) // another version than the newest is a replay or a conflict: nothing to judge
		if in.Version == newest.version {
			if judged = newest.version; !in.ByServer {
				if next, err = s.judge(ctx, a, rules, newest, next); err != nil {
					return Saved{}, err
				}
			}
		}
		saved, word, err := s.write(ctx, a, in.Version, judged, next, 0)
		switch {
		case err != nil:
			return Saved{}, err
		case word == "stale": // the version that the caller names has come into being since the read
			continue
		case word == "version_conflict":
			return Saved{}, s.conflict(ctx, a)
		default:
			return saved, nil
		}
	}
}

// judge checks a player's state against the rules and answers it as it is to be stored.
func (s *Service) judge(ctx context.Context, a address, rules Rules, newest, next record) (record, error) {
	var previous jsontext.Value
	if newest.version > 0 && rules.compare() {
		if s.signer.intact(a, newest) {
			previous = newest.state
		} else if tampered, usable := s.tampered(ctx, a, newest.version); usable {
			return next, tampered
		} // else no version can be trusted, and the save is like a first one
	}
	state, left, breaches := rules.judge(previous, next.state, parsePace(newest.pace), max(0, next.at-newest.at))
	if err := s.rejected(ctx, a, breaches); err != nil {
		return next, err
	}
	next.state, next.pace = state, left.String()
	return next, nil
}

// rejected logs what is broken in shadow mode and refuses what is broken in earnest.
func (s *Service) rejected(ctx context.Context, a address, breaches []breach) error {
	refusal := apierror.SaveRejected
	for _, b := range breaches {
		if b.shadow {
			s.log.LogAttrs(ctx, slog.LevelWarn, "a save breaks a rule in shadow mode", slog.Int64("user", a.user), slog.Int64("game", a.game),
				slog.String("slot", a.slot), slog.String("rule", b.rule), slog.String("path", b.path), slog.String("reason", b.reason))
			continue
		}
		if len(refusal.FieldErrors) == 0 {
			refusal = refusal.WithReason("%s: %s (%s)", b.path, b.reason, b.rule).WithMember("rule", b.rule).WithMember("path", b.path)
		}
		refusal = refusal.WithField("state."+b.path, b.code, b.reason)
	}
	if len(refusal.FieldErrors) == 0 {
		return nil
	}
	return refusal
}

// write signs and stores a record. It answers the script's word where the caller has to go on: "stale", "version_conflict".
func (s *Service) write(ctx context.Context, a address, base, judged int64, next record, restored int64) (Saved, string, error) {
	if next.size = len(next.state); next.size > MaxStateBytes { // with the server's fields
		return Saved{}, "", tooLarge
	}
	if next.pace == "" {
		next.pace = pace{}.String()
	}
	next = s.signer.seal(a, next)
	event, err := json.Marshal(changed{
		Game: a.game, Slot: a.slot, Version: next.version, SavedAt: next.savedAt().Format(milliseconds), Size: next.size, Restored: restored,
	})
	if err != nil {
		return Saved{}, "", fmt.Errorf("encode user.progress: %w", err)
	}
	word, before, err := s.store.write(ctx, a, base, judged, next, event)
	switch {
	case err != nil:
		return Saved{}, "", err
	case word == "ok":
		return next.saved(a.slot), word, nil
	case word == "replay":
		return before.saved(a.slot), word, nil
	case word == "slots_full":
		return Saved{}, word, apierror.SlotsFull.WithReason("a player has at most %d slots in a game", MaxSlots)
	default: // "stale", "version_conflict"
		return Saved{}, word, nil
	}
}

// changed is the data of user.progress.
type changed struct {
	Game     int64  `json:"gameId"`
	Slot     string `json:"slot"`
	Version  int64  `json:"version"`
	SavedAt  string `json:"savedAt"`
	Size     int    `json:"size"`
	Restored int64  `json:"restoredFrom,omitzero"`
}

const milliseconds = "2006-01-02T15:04:05.000Z"

// conflict is the refusal that puts the server's copy in the player's hands.
func (s *Service) conflict(ctx context.Context, a address) error {
	current, err := s.load(ctx, a)
	switch {
	case errors.Is(err, apierror.SlotNotFound):
		return apierror.VersionConflict.WithReason("the slot is empty: its first save has the version 0")
	case err != nil:
		return err
	}
	return apierror.VersionConflict.WithReason("the newest version is %d", current.Version).WithMember("current", current)
}

// Load answers the newest version of a slot, or slot_not_found. One that was altered in the store is refused with
// save_tampered, whose member "intact" lists the versions that Restore can bring back, newest first.
func (s *Service) Load(ctx context.Context, user, game int64, slot string) (LoadedSave, error) {
	if err := checkSlot(slot); len(err.FieldErrors) > 0 {
		return LoadedSave{}, err
	}
	return s.load(ctx, address{user, game, slot})
}

func (s *Service) load(ctx context.Context, a address) (LoadedSave, error) {
	newest, _, _, err := s.store.read(ctx, a, true, 0)
	if err != nil {
		return LoadedSave{}, err
	}
	if newest.version == 0 {
		return LoadedSave{}, apierror.SlotNotFound
	}
	if !s.signer.intact(a, newest) {
		err, _ := s.tampered(ctx, a, newest.version)
		return LoadedSave{}, err
	}
	return newest.loaded(a.slot), nil
}

// List answers the slots of a player in a game, by name.
func (s *Service) List(ctx context.Context, user, game int64) ([]Saved, error) {
	return s.store.list(ctx, user, game)
}

// History answers the versions of a slot that are kept, newest first, or slot_not_found.
func (s *Service) History(ctx context.Context, user, game int64, slot string) ([]Revision, error) {
	if err := checkSlot(slot); len(err.FieldErrors) > 0 {
		return nil, err
	}
	a := address{user, game, slot}
	records, err := s.store.history(ctx, a)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, apierror.SlotNotFound
	}
	revisions := make([]Revision, len(records))
	for i, r := range records {
		revisions[i] = Revision{Version: r.version, SavedAt: r.savedAt(), Size: r.size, SignatureValid: s.signer.intact(a, r)}
	}
	return revisions, nil
}

// tampered is the refusal of a version that was altered, with the versions that are intact, and whether there are any.
func (s *Service) tampered(ctx context.Context, a address, version int64) (error, bool) { //nolint:revive // the refusal is the answer
	s.log.LogAttrs(ctx, slog.LevelError, "a save was altered in the store, or its signing key is gone",
		slog.Int64("user", a.user), slog.Int64("game", a.game), slog.String("slot", a.slot), slog.Int64("version", version))
	history, err := s.History(ctx, a.user, a.game, a.slot)
	if err != nil && !errors.Is(err, apierror.SlotNotFound) {
		return err, true
	}
	intact := make([]Revision, 0, MaxVersions)
	for _, r := range history {
		if r.SignatureValid {
			intact = append(intact, r)
		}
	}
	return apierror.SaveTampered.WithReason("version %d was altered in the store", version).WithMember("version", version).WithMember("intact", intact), len(intact) > 0
}

// Restore makes the state of an older version the newest version. The rules' bounds hold for it; the rules that compare
// do not, since it was accepted once; serverOnly fields stay as they are in the newest version. It is refused with
// slot_not_found, save_version_not_found, save_tampered or save_rejected.
func (s *Service) Restore(ctx context.Context, user, game int64, in RestoreInput) (Saved, error) {
	if err := checkSlot(in.Slot); len(err.FieldErrors) > 0 || in.Version < 1 {
		if in.Version < 1 {
			err = err.WithField("version", "range", "must be a version that history lists")
		}
		return Saved{}, err
	}
	rules, err := s.rules(ctx, game)
	if err != nil {
		return Saved{}, err
	}
	a := address{user, game, in.Slot}
	unnamed := rand.Text()
	for {
		newest, old, now, err := s.store.read(ctx, a, true, in.Version)
		if err != nil {
			return Saved{}, err
		}
		message := func(base int64) string {
			if in.MessageID == "" {
				return messageOf(unnamed, "restore", base, nil)
			}
			return messageOf(in.MessageID, fmt.Sprint("restore ", in.Version), base, nil)
		}
		switch {
		case newest.version == 0:
			return Saved{}, apierror.SlotNotFound
		case newest.message == message(newest.version-1): // the same message was here just now
			return newest.saved(a.slot), nil
		case old.version == 0:
			return Saved{}, apierror.SaveVersionNotFound.WithReason("the slot keeps no version %d", in.Version)
		case !s.signer.intact(a, old):
			err, _ := s.tampered(ctx, a, old.version)
			return Saved{}, err
		}
		standing := newest.state
		if !s.signer.intact(a, newest) {
			standing = old.state
		}
		state, breaches := rules.judgeOld(standing, old.state)
		if err := s.rejected(ctx, a, breaches); err != nil {
			return Saved{}, err
		}
		next := record{version: newest.version + 1, message: message(newest.version), at: now, state: state, pace: newest.pace}
		saved, word, err := s.write(ctx, a, newest.version, newest.version, next, in.Version)
		if err != nil {
			return Saved{}, err
		}
		if word == "ok" || word == "replay" {
			return saved, nil
		} // somebody saved since the read: their version is history now, and this one comes after it
	}
}

// messageOf names a message by everything that it asks for, so that only the same is the same. A message without an id is like
// no other, but for the copies that the connection to the store may send of it.
func messageOf(id, verb string, base int64, state []byte) string {
	if id == "" {
		id = rand.Text()
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d %s %s %d ", len(id), id, verb, base)
	_, _ = h.Write(state)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// rulebook is the rules of a game with the text that they were read from.
type rulebook struct {
	text  string
	rules Rules
}

// rules answers the rules of a game as they stand now.
func (s *Service) rules(ctx context.Context, game int64) (Rules, error) {
	raw, err := s.games.ProgressRules(ctx, game)
	if err != nil {
		return Rules{}, err
	}
	if known, ok := s.parsed.Load(game); ok && known.(*rulebook).text == string(raw) {
		return known.(*rulebook).rules, nil
	}
	rules, err := ParseRules(raw)
	if err != nil {
		// Not a refusal: the player is not to blame. Nothing is saved until the game's settings are right.
		return Rules{}, fmt.Errorf("read the rules of game %d: %s", game, err)
	}
	s.parsed.Store(game, &rulebook{text: string(raw), rules: rules})
	return rules, nil
}
