package leaderboards

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/secret"
	"github.com/parlor-games/parlor/internal/base/validate"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// SubmitInput is one score. What is for staff is invalid_request from a player.
type SubmitInput struct {
	Score    ScoreInput        `json:"score"`             // required
	Subscore ScoreInput        `json:"subscore,omitzero"` // required on a board with one
	UserID   int64             `json:"userId,omitzero"`   // for staff, and required there
	PlayID   string            `json:"playId,omitzero"`   // where the rules demand plays, of players
	PlayedAt *time.Time        `json:"playedAt,omitzero"` // for staff: names the season of a late result
	Metadata wire.RawJSON      `json:"metadata,omitzero"` // a JSON object of at most 1 KiB
	Evidence *Evidence         `json:"evidence,omitzero"`
	Segments map[string]string `json:"segments,omitzero"` // for staff; fixed for a player in a season
}

// SubmitResult is the effect of a score.
type SubmitResult struct {
	Entry    Entry     `json:"entry"`    // as it is now
	Changed  bool      `json:"changed"`  // whether the score has changed the entry
	Previous *Previous `json:"previous"` // nil for a first score
	Replayed bool      `json:"-"`        // by an earlier request with the same key
}

// Previous is an entry before a score.
type Previous struct {
	Score    Score  `json:"score"`
	Subscore *Score `json:"subscore"`
}

const (
	maxDetailsKiB    = 1
	maxEvidenceBytes = 512
	// MaxBatch is the largest number of scores of one request.
	MaxBatch = 100
)

var playPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{16,64}$`)

// scoreDraft is a valid score on its way to the store.
type scoreDraft struct {
	writer   Writer
	userID   int64
	in       SubmitInput
	playedMS int64 // at least 1; 0: now
	details  string
	segments string
	caller   string // of the receipt
	receipt  idempotency.Receipt

	checkedBy int64 // version of the definition that check has compared it with; 0: none
}

// Submit adds a score: of the calling player where writers names players, of any player of the game
// by staff where it names the server.
//
// It returns invalid_request with every faulty field, user_not_found, season_closed, score_rejected
// (with the rule), submissions_exhausted, segment_fixed, board_full, play_not_found, play_used,
// play_expired, idempotency_key_reused and version_conflict.
func (s *Service) Submit(
	ctx context.Context, caller principal.Caller, gameID int64, key string, in SubmitInput, rc idempotency.Receipt,
) (SubmitResult, error) {
	if err := s.authorizeRead(ctx, caller, gameID); err != nil {
		return SubmitResult{}, err
	}
	b, err := s.load(ctx, gameID, key)
	if err != nil {
		return SubmitResult{}, err
	}
	a := scoreDraft{writer: WriterServer, userID: in.UserID, in: in, caller: caller.ActorID(), receipt: rc}
	if caller.Role == principal.Player {
		a.writer, a.userID = WriterPlayers, caller.UserID
		if err := s.findPlay(ctx, b, &a); err != nil {
			return SubmitResult{}, err
		}
	} else if in.PlayedAt != nil {
		a.playedMS = max(in.PlayedAt.UnixMilli(), 1)
	}
	if err := s.checkSubmission(ctx, b, &a); err != nil {
		return SubmitResult{}, err
	}
	if caller.Role != principal.Player {
		switch game, err := s.players.Game(ctx, a.userID); {
		case err != nil:
			return SubmitResult{}, err
		case game != gameID:
			return SubmitResult{}, apierror.UserNotFound
		}
	}
	return s.submit(ctx, b, a)
}

// BatchResult is the effect of one score of a batch: its entry or its error.
type BatchResult struct {
	UserID int64  `json:"userId"`
	Entry  *Entry `json:"entry,omitzero"`
	Err    error  `json:"-"`
}

// SubmitBatch is Submit for up to MaxBatch scores, one after the other, by staff. A score that is
// refused does not stop the others, but an outage does. It reports whether an earlier request with
// the same key has sent some of them. It returns invalid_request for another number of scores.
func (s *Service) SubmitBatch(
	ctx context.Context, caller principal.Caller, gameID int64, key string, batch []SubmitInput, rc idempotency.Receipt,
) (results []BatchResult, replayed bool, err error) {
	if err := s.authorizeManage(ctx, caller, gameID); err != nil {
		return nil, false, err
	}
	if len(batch) < 1 || len(batch) > MaxBatch {
		return nil, false, apierror.InvalidRequest.WithField("scores", "range", fmt.Sprintf("must be 1 to %d", MaxBatch))
	}
	results = make([]BatchResult, len(batch))
	for i, in := range batch {
		one := rc
		if rc.KeyDigest != "" {
			one.KeyDigest += ":" + strconv.Itoa(i)
		}
		r, err := s.Submit(ctx, caller, gameID, key, in, one)
		results[i] = BatchResult{UserID: in.UserID, Err: err}
		if e, expected := apierror.As(err); err != nil && (!expected || e.Status >= 500 || isOfBatch(e)) {
			return nil, false, err
		}
		replayed = replayed || r.Replayed
		if err == nil {
			results[i].Entry = &r.Entry
		}
	}
	return results, replayed, nil
}

// isOfBatch reports whether an error is about the request and not about one of its scores.
func isOfBatch(e *apierror.Error) bool {
	return slices.Contains([]string{
		apierror.BoardNotFound.Code, apierror.Forbidden.Code, apierror.IdempotencyKeyReused.Code,
	}, e.Code)
}

// findPlay makes the start of the play that a score names the time at which the score was played. A
// play that is not known has none.
func (s *Service) findPlay(ctx context.Context, b *board, a *scoreDraft) (err error) {
	if playPattern.MatchString(a.in.PlayID) {
		a.playedMS, err = s.store.playStart(ctx, b, a.userID, a.in.PlayID)
	}
	return err
}

// checkSubmission checks a score by the definition of the season that is open by this node's clock.
// Changes for the next seasons do not count yet.
func (s *Service) checkSubmission(ctx context.Context, b *board, a *scoreDraft) error {
	b, one, err := s.likelySeason(ctx, b, a.playedMS)
	if err != nil {
		return err
	}
	return a.checkFor(b, one)
}

// likelySeason returns the season that takes a score that was played at a time (ms; 0: now) by the
// clock of this node, and the current one where none does: then the store's clock decides.
func (s *Service) likelySeason(ctx context.Context, b *board, playedMS int64) (*board, *season, error) {
	now := time.Now().UnixMilli()
	b, err := s.addDueSeasons(ctx, b, now)
	if err != nil {
		return nil, nil, err
	}
	one, _ := b.chooseSeason(playedMS, now)
	if one == nil {
		one = b.currentAt(now)
	}
	return b, one, nil
}

// checkFor is check by the definition of a season, unless that was the last one.
func (a *scoreDraft) checkFor(b *board, one *season) error {
	if a.checkedBy == one.definition {
		return nil
	}
	err := a.check(b.definitionOf(one))
	if err == nil {
		a.checkedBy = one.definition
	}
	return err
}

// check returns invalid_request with every faulty field, and forbidden for a writer whom the
// definition does not name.
func (a *scoreDraft) check(d *Definition) error {
	switch {
	case d.mayWrite(a.writer):
	case a.writer == WriterRooms:
		return apierror.Forbidden.WithReason("the leaderboard %q takes no scores of rooms", d.Board)
	default:
		return apierror.Forbidden.WithReason("the leaderboard does not take scores of this caller")
	}
	var errs apierror.FieldErrors
	checkScore(&errs, "score", a.in.Score, d.Decimals)
	switch {
	case d.Subscore != nil:
		checkScore(&errs, "subscore", a.in.Subscore, d.Decimals)
	case a.in.Subscore != "":
		errs.Add("subscore", "unknown", "the leaderboard has no subscore")
	}
	isPlayer := a.writer == WriterPlayers
	for _, m := range []struct {
		name  string
		given bool
	}{{"userId", a.in.UserID != 0}, {"playedAt", a.in.PlayedAt != nil}, {"segments", a.in.Segments != nil}} {
		if isPlayer && m.given {
			errs.Add(m.name, "forbidden", "only staff can give it")
		}
	}
	if !isPlayer && a.userID < 1 {
		errs.Add("userId", "required", "must be a player")
	}
	needsPlay := isPlayer && d.Rules != nil && d.Rules.Play
	switch {
	case needsPlay && a.in.PlayID == "":
		errs.Add("playId", "required", "is required by the rules of the leaderboard")
	case !needsPlay && a.in.PlayID != "":
		errs.Add("playId", "unknown", "the leaderboard has no plays for this caller")
	}
	a.checkDetails(&errs)
	a.checkSegments(&errs, d)
	if err := errs.Err(); err != nil {
		return err
	}
	if needsPlay && !playPattern.MatchString(a.in.PlayID) {
		return apierror.PlayNotFound
	}
	return nil
}

func checkScore(errs *apierror.FieldErrors, field string, score ScoreInput, decimals int) {
	if score == "" {
		errs.Add(field, "required", "is required")
	} else if _, problem := score.toUnits(decimals); problem != "" {
		errs.Add(field, "format", problem)
	}
}

func (a *scoreDraft) checkDetails(errs *apierror.FieldErrors) {
	stored := details{Evidence: a.in.Evidence}
	if len(a.in.Metadata) > 0 && string(a.in.Metadata) != "null" {
		stored.Metadata = validate.Object(errs, "metadata", a.in.Metadata, maxDetailsKiB)
	}
	if e := a.in.Evidence; e != nil {
		for _, m := range []struct{ name, text string }{{"roomId", e.RoomID}, {"url", e.URL}, {"digest", e.Digest}} {
			if len(m.text) > maxEvidenceBytes {
				errs.Add("evidence."+m.name, "length", fmt.Sprintf("must have at most %d bytes", maxEvidenceBytes))
			}
		}
		if u, err := url.Parse(e.URL); e.URL != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
			errs.Add("evidence.url", "format", "must be an https address")
		}
	}
	if stored.Metadata == nil && stored.Evidence == nil || errs.Err() != nil {
		return
	}
	text, err := wire.Marshal(stored)
	if err != nil { // the metadata is valid JSON
		errs.Add("metadata", "type", "must be a JSON object")
		return
	}
	a.details = string(text)
}

// checkSegments sets the segments in the order of the definition.
func (a *scoreDraft) checkSegments(errs *apierror.FieldErrors, d *Definition) {
	var list []string
	for _, segment := range d.Segments {
		value, ok := a.in.Segments[segment]
		if ok && !valuePattern.MatchString(value) {
			errs.Add("segments."+segment, "format", "must be 1 to 32 of A-Z, a-z, 0-9, _ and -")
		}
		if ok {
			list = append(list, segment+"="+value)
		}
	}
	for segment := range a.in.Segments {
		if !slices.Contains(d.Segments, segment) {
			errs.Add("segments."+segment, "unknown", "the leaderboard has no such segment")
		}
	}
	a.segments = strings.Join(list, ",")
}

// submit adds a score to its season and reads the entry.
func (s *Service) submit(ctx context.Context, b *board, a scoreDraft) (SubmitResult, error) {
	call, result, err := s.addScore(ctx, b, a)
	if err == nil {
		result.Entry, err = s.readEntry(ctx, call.board.ranking(call.season), call.userID, true)
	}
	return result, err
}

// addScore adds a score to its season and returns the call that did, with the season of the first
// request when it is a replay. The season is chosen by the clock of this node at first, and by the
// store's when the script did not take it.
func (s *Service) addScore(ctx context.Context, b *board, a scoreDraft) (submission, SubmitResult, error) {
	fail := func(err error) (submission, SubmitResult, error) { return submission{}, SubmitResult{}, err }
	if a.checkedBy == 0 {
		if err := s.checkSubmission(ctx, b, &a); err != nil {
			return fail(err)
		}
	}
	if err := s.markEntered(ctx, b, a.userID); err != nil {
		return fail(err)
	}
	now, nonce := time.Now().UnixMilli(), idempotency.NewNonce()
	for try := range maxAttempts {
		call, err := s.prepare(ctx, b, &a, now)
		if err != nil {
			return fail(err)
		}
		call.nonce = nonce
		r, err := s.store.submit(ctx, call)
		if err != nil {
			return fail(err)
		}
		if !r.isStale {
			result, err := toResult(&call, r)
			return call, result, err
		}
		if call.to == neverOpen || try > 1 && r.segments == "" {
			return fail(apierror.SeasonClosed)
		}
		now = r.storeNow
		if r.segments != "" {
			if a.segments != "" && a.segments != r.segments {
				return fail(apierror.SegmentFixed)
			}
			a.segments = r.segments
		}
		if b, err = s.reload(ctx, b.gameID, b.key); err != nil {
			return fail(err)
		}
	}
	return fail(apierror.SeasonClosed)
}

// markEntered stores, before the first entry, that the board may have an entry of the player. The
// deletion of a player uses it to find all boards.
func (s *Service) markEntered(ctx context.Context, b *board, userID int64) error {
	who := enteredBoard{boardID{b.gameID, b.key}, userID}
	if _, ok := s.entered.Get(who); ok {
		return nil
	}
	if err := s.store.addUserBoard(ctx, userID, b.key); err != nil {
		return err
	}
	s.entered.Add(who, struct{}{})
	return nil
}

// neverOpen is an end (ms) in the past. With it the script only returns the first outcome of a
// request with a key, and accepts no score.
const neverOpen = 1

// prepare chooses the season of a score at a time (ms) and checks the rules that need no entry. The
// definition of that season alone decides who may write and by which rules.
func (s *Service) prepare(ctx context.Context, b *board, a *scoreDraft, nowMS int64) (submission, error) {
	b, err := s.addDueSeasons(ctx, b, nowMS)
	if err != nil {
		return submission{}, err
	}
	one, to := b.chooseSeason(a.playedMS, nowMS)
	if one == nil {
		if a.receipt.KeyDigest == "" {
			storeNow, err := s.store.now(ctx)
			if err != nil {
				return submission{}, err
			}
			if one, to = b.chooseSeason(a.playedMS, storeNow); one == nil {
				return submission{}, apierror.SeasonClosed
			}
		} else {
			one, to = b.currentAt(nowMS), neverOpen
		}
	}
	if err := a.checkFor(b, one); err != nil {
		return submission{}, err
	}
	d := b.definitionOf(one)
	call := submission{
		board: b, season: one, to: to, userID: a.userID, segments: a.segments, details: a.details, caller: a.caller,
		receipt: a.receipt,
	}
	call.score, _ = a.in.Score.toUnits(d.Decimals) // decimals never change, and it was checked
	if d.Subscore != nil {
		call.sub, _ = a.in.Subscore.toUnits(d.Decimals)
	}
	if a.writer == WriterPlayers && d.Rules != nil {
		if err := call.addRules(d, a.in.PlayID); err != nil {
			return submission{}, err
		}
	}
	// Last, so that a score that does not count takes no place in a cohort: nobody would play there.
	isOfUnknownPlay := call.play != "" && a.playedMS == 0
	if d.League != nil && to != neverOpen && !isOfUnknownPlay {
		if call.segments, err = s.withCohort(ctx, b, one, a.userID, a.segments); err != nil {
			return submission{}, err
		}
	}
	return call, nil
}

// addRules makes the script keep the rules of a definition, and checks those that need no entry.
func (call *submission) addRules(d *Definition, playID string) error {
	call.rules = d.Rules
	if d.Rules.Play {
		call.play = playID
	}
	for _, rule := range []struct {
		name     string
		bound    *ScoreInput
		isBroken func(bound int64) bool
	}{
		{"min", d.Rules.Min, func(bound int64) bool { return call.score < bound }},
		{"max", d.Rules.Max, func(bound int64) bool { return call.score > bound }},
	} {
		if rule.bound == nil {
			continue
		}
		if bound, _ := rule.bound.toUnits(d.Decimals); rule.isBroken(bound) {
			return rejectedBy(rule.name)
		}
	}
	return nil
}

// chooseSeason returns the season of a score that was played at a time (ms; 0 means at nowMS), and
// the ms from which it takes no such score; nil when no season takes it.
func (b *board) chooseSeason(playedMS, nowMS int64) (one *season, to int64) {
	at := nowMS
	if playedMS != 0 {
		at = min(playedMS, nowMS)
	}
	if one = b.seasonAt(at); one == nil || one.isOpenAt(nowMS) {
		if one == nil {
			return nil, 0
		}
		return one, one.closes
	}
	if one.isSealed || nowMS >= one.sealsAt() {
		return nil, 0
	}
	return one, one.sealsAt()
}

// toResult returns the result of a score without its entry. A replay gets the season of its first
// request.
func toResult(call *submission, r submitted) (SubmitResult, error) {
	if err := errorOf(r.Reply); err != nil {
		return SubmitResult{Replayed: r.replayed}, err
	}
	d := call.board.definitionOf(call.season)
	v := redisdb.NewValues("an accepted score", r.Values)
	result := SubmitResult{Changed: v.NextText() == "1", Replayed: r.replayed}
	score, sub, number := v.NextOptionalInt(), v.NextOptionalInt(), v.NextInt()
	if err := v.Err(); err != nil {
		return SubmitResult{}, err
	}
	if r.replayed { // the first request may have been in a season before
		if call.season = call.board.find(number); call.season == nil {
			return SubmitResult{Replayed: true}, apierror.SeasonNotFound
		}
	}
	if score != nil {
		result.Previous = &Previous{Score: Score{*score, d.Decimals}}
		if sub != nil {
			result.Previous.Subscore = &Score{*sub, d.Decimals}
		}
	}
	return result, nil
}

// Play is the start of a play.
type Play struct {
	PlayID    string    `json:"playId"`
	StartedAt time.Time `json:"startedAt"`
	ExpiresAt time.Time `json:"expiresAt"` // until when its score must have come
}

// startPlay is StartPlay on any board.
func (s *Service) startPlay(
	ctx context.Context, caller principal.Caller, gameID int64, key string,
) (Play, error) {
	if caller.Role != principal.Player {
		return Play{}, apierror.Forbidden
	}
	if err := s.authorizeRead(ctx, caller, gameID); err != nil {
		return Play{}, err
	}
	b, err := s.load(ctx, gameID, key)
	if err != nil {
		return Play{}, err
	}
	now, err := s.store.now(ctx)
	if err != nil {
		return Play{}, err
	}
	if b, err = s.addDueSeasons(ctx, b, now); err != nil {
		return Play{}, err
	}
	one := b.seasonAt(now)
	if one == nil {
		return Play{}, apierror.SeasonClosed
	}
	rules := b.definitionOf(one).Rules
	if rules == nil || !rules.Play {
		return Play{}, apierror.InvalidRequest.WithField("board", "range", "the leaderboard has no plays")
	}
	if err := s.admitNew(b.gameID); err != nil {
		return Play{}, err
	}
	longest := time.Duration(rules.longestPlay()) * time.Second
	id := secret.New()
	start, err := s.store.startPlay(ctx, b, caller.UserID, id, longest+playMemory)
	if err != nil {
		return Play{}, err
	}
	at := time.UnixMilli(start).UTC()
	return Play{PlayID: id, StartedAt: at, ExpiresAt: at.Add(longest)}, nil
}

// playMemory is the time for which an expired play is remembered, so that a late score is
// play_expired and not play_not_found.
const playMemory = time.Hour
