package trail

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// The bounds of the trail.
const (
	MaxRecords        = 10_000 // of operators
	MaxServerRecords  = 5_000  // of the servers of a game
	MaxRoutineRecords = 1_000  // of their routine, beside those

	MaxStateBytes = 2 << 10 // of Before and of After, each; a larger one is a Digest
	MaxNameBytes  = 160     // of Action, Target and RequestID, each; the rest is cut off

	maxMemberBytes = 512 // of a member in a state that is larger than MaxStateBytes
)

// Outcome says whether a write is done, or may have changed only a part.
type Outcome string

// The outcomes. A write that was refused is not in the trail.
const (
	Done    Outcome = "done"
	Unknown Outcome = "unknown" // it failed halfway, or its reply was lost: it may have changed something
)

// Act is one write of an operator or of a game's server.
type Act struct {
	Actor     string       `json:"actor"`     // "operator:1" by the place of the key, "server:<id of the key>"
	GameID    *int64       `json:"gameId"`    // the game of the server, nil for an operator
	Action    string       `json:"action"`    // operationId of openapi.yaml: "patchGame"
	Target    string       `json:"target"`    // "user:7", "game:3"; "" for what would have been created
	Before    wire.RawJSON `json:"before"`    // an object with what changed, or null
	After     wire.RawJSON `json:"after"`     // as Before
	RequestID string       `json:"requestId"` // of the request that changed it
	Outcome   Outcome      `json:"outcome"`
}

// Record is an act in the trail.
type Record struct {
	ID int64     `json:"id"` // from 1, one more with every record
	At time.Time `json:"at"` // by the store's clock, UTC
	Act
}

// Digest stands for a state, or a member of one, that is too large.
type Digest struct {
	SizeBytes int    `json:"bytes"`  // of the JSON
	SHA256    string `json:"sha256"` // of the JSON, hexadecimal
}

// Service writes and reads the trail. It is safe for concurrent use.
type Service struct {
	store store
	log   *slog.Logger
	tally tally
	later laterRecords
}

// New returns a service on a store that writes one line to log for each act of an operator.
func New(db *redisdb.DB, log *slog.Logger) *Service {
	return &Service{store: store{db, records{MaxRecords, MaxServerRecords, MaxRoutineRecords}}, log: log}
}

// Write is an act before it is recorded. Before and After are encoded as JSON objects; they must
// not contain a secret.
type Write struct {
	Caller        principal.Caller // an operator or a game's server
	Action        string
	Target        string
	Before, After any
	RequestID     string
	Outcome       Outcome
	IsRoutine     bool // a game's server does it for each player or each round, and it moves no money
}

// Record logs a write and appends it to the trail before ctx ends. It returns no error, because the
// write has happened and the log has every record. Routine writes of a server key are only counted
// in the log. So are records of a server key that the store did not accept; Run appends them when
// the store is back.
func (s *Service) Record(ctx context.Context, w Write) {
	act := Act{
		Actor: actorOf(w.Caller), Action: cut(w.Action), Target: cut(w.Target), RequestID: cut(w.RequestID),
		Before: s.encode(w.Before), After: s.encode(w.After), Outcome: w.Outcome,
	}
	isCounted := false
	if w.Caller.Role == principal.Server {
		act.GameID = &w.Caller.GameID
		isCounted = w.IsRoutine || w.Outcome == Unknown
	}
	if isCounted {
		s.tally.add(act)
	} else {
		s.log.LogAttrs(ctx, slog.LevelInfo, "staff write", act.attributes()...)
	}
	r := record{nonce: idempotency.NewNonce(), act: act, isRoutine: w.IsRoutine}
	var err error
	for range 2 { // the nonce lets a second attempt append only what the first did not
		if err = s.append(ctx, r); err == nil {
			return
		}
	}
	if w.Outcome == Unknown && isCounted && s.later.add(r) {
		return
	}
	s.logUnrecorded(ctx, act, err)
}

// logUnrecorded logs an act that the store did not take. The error is a text: as an error of the
// store it would be held back.
func (s *Service) logUnrecorded(ctx context.Context, act Act, err error) {
	s.log.LogAttrs(ctx, slog.LevelError, "staff write not in the trail",
		append(act.attributes(), slog.String("error", err.Error()))...)
}

// record is an act on its way into the trail.
type record struct {
	nonce     string
	act       Act
	isRoutine bool
}

// append appends an act in at most half of the time that is left.
func (s *Service) append(ctx context.Context, r record) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	return s.store.append(ctx, r)
}

// actorOf returns the name of a caller in the trail.
func actorOf(c principal.Caller) string {
	if c.Role == principal.Server {
		return "server:" + c.ServerKeyID
	}
	return string(c.Role) + ":" + strconv.Itoa(c.KeyID)
}

// cut returns a name that fits and can be encoded: a caller chose some of it.
func cut(name string) string { return strings.ToValidUTF8(name[:min(len(name), MaxNameBytes)], "") }

func (a Act) attributes() []slog.Attr {
	list := []slog.Attr{
		slog.String("actor", a.Actor), slog.String("action", a.Action), slog.String("target", a.Target),
		slog.Any("before", a.Before), slog.Any("after", a.After), slog.String("requestId", a.RequestID),
		slog.String("outcome", string(a.Outcome)),
	}
	if a.GameID != nil {
		list = append(list, slog.Int64("gameId", *a.GameID))
	}
	return list
}

// encode returns a state as JSON of at most MaxStateBytes: members that are too large become
// digests, and if that is not enough, the whole does. A state that cannot be encoded is logged and
// null.
func (s *Service) encode(state any) wire.RawJSON {
	text, err := wire.Marshal(state)
	if err != nil {
		s.log.Error("encode a state for the trail", slog.Any("error", err))
		return wire.RawJSON("null")
	}
	if len(text) <= MaxStateBytes {
		return text
	}
	var members map[string]wire.RawJSON
	if err := wire.Unmarshal(text, &members); err == nil {
		for name, member := range members {
			if len(member) > maxMemberBytes {
				members[name] = digestOf(member)
			}
		}
		if short, err := wire.Marshal(members); err == nil && len(short) <= MaxStateBytes {
			return short
		}
	}
	return digestOf(text)
}

func digestOf(text []byte) wire.RawJSON {
	sum := sha256.Sum256(text)
	digest, _ := wire.Marshal(Digest{len(text), hex.EncodeToString(sum[:])}) // no error: an integer and digits
	return digest
}

// Query selects records. Zero members select all.
type Query struct {
	Actor, Target string    // exactly
	GameID        int64     // of the servers of this game alone
	From          time.Time // not older
	BeforeID      int64     // with a smaller number: the cursor
	Limit         int       // records of a page, at least 1
}

// Page is one page of the trail, newest first.
type Page struct {
	Records    []Record
	NextBefore int64 // BeforeID of the next page; 0 at the end
}

// List returns the newest records that a query selects. One call reads a bounded part of the trail:
// when few records fit, a page may be short or empty and has NextBefore. It is for the operator. It
// returns forbidden.
func (s *Service) List(ctx context.Context, caller principal.Caller, q Query) (Page, error) {
	if caller.Role != principal.Operator {
		return Page{}, apierror.Forbidden
	}
	page := Page{Records: []Record{}}
	lists, err := s.store.lists(ctx, q.GameID)
	if err != nil {
		return Page{}, err
	}
	for range maxReads {
		records, more, err := s.store.readBefore(ctx, lists, q.BeforeID)
		if err != nil {
			return Page{}, err
		}
		for _, r := range records {
			if r.At.Before(q.From) {
				return page, nil
			}
			if len(page.Records) == q.Limit {
				page.NextBefore = q.BeforeID
				return page, nil
			}
			q.BeforeID = r.ID
			if q.selects(r) {
				page.Records = append(page.Records, r)
			}
		}
		if !more {
			return page, nil
		}
	}
	page.NextBefore = q.BeforeID
	return page, nil
}

// selects reports whether a record of the lists that a query reads is one of its records.
func (q Query) selects(r Record) bool {
	isOfGame := q.GameID == 0 || r.GameID != nil && *r.GameID == q.GameID
	return isOfGame && (q.Actor == "" || q.Actor == r.Actor) && (q.Target == "" || q.Target == r.Target)
}

// maxReads bounds how much one List reads: this many times readRecords.
const maxReads = 10
