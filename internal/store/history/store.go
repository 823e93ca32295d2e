package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/secret"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

type store struct{ db *redisdb.DB }

// meta is what the store says of itself.
type meta struct {
	installation string // "" in an empty store
	epoch        int64  // 0 in an empty store
	accepted     int64  // last epoch that an operator accepted, 0 for none
	former       []string
	stopped      string // JSON of a Stop, "" while money goes on
}

// replaces reports whether an operator let this store follow an installation.
func (m meta) replaces(installation string) bool { return slices.Contains(m.former, installation) }

func (s store) readMeta(ctx context.Context) (meta, error) {
	all, err := s.db.Client.HGetAll(ctx, keys.Meta()).Result()
	if err != nil {
		return meta{}, redisdb.WrapError("read the installation's record", err)
	}
	return decodeMeta(all)
}

func decodeMeta(all map[string]string) (meta, error) {
	f := redisdb.NewFields("the installation's record", all)
	m := meta{
		installation: f.Text(keys.MetaInstallationField), epoch: f.Int(keys.MetaEpochField),
		accepted: f.Int(keys.MetaAcceptedField), stopped: f.Text(keys.MetaStoppedField),
	}
	if text := f.Text(keys.MetaFormerField); text != "" {
		m.former = strings.Split(text, ",")
	}
	return m, f.Err()
}

// createInstallation gives a store its name and its first epoch, unless another node did.
func (s store) createInstallation(ctx context.Context) error {
	err := s.db.Client.HSetNX(ctx, keys.Meta(), keys.MetaInstallationField, secret.New()[:16]).Err()
	if err == nil {
		err = s.db.Client.HSetNX(ctx, keys.Meta(), keys.MetaEpochField, 1).Err()
	}
	return redisdb.WrapError("name the installation", err)
}

// ledger is how far the ledger of a game is.
type ledger struct {
	last       int64  // number of the last entry
	head       string // of the last entry
	headAtMark string // of the entry that was asked for, "" when there is none
	firstHead  string // of entry 1, "" when there is none or it left the ledger
	base       int64  // entries that left the ledger
}

// readLedgers returns the ends of ledgers, and their entries with the given numbers. A game whose
// ledger cannot be read is absent; err is the first cause.
func (s store) readLedgers(ctx context.Context, numbers map[int64]int64) (map[int64]ledger, error) {
	games := make([]int64, 0, len(numbers))
	calls := make([]redisdb.ScriptCall, 0, len(numbers))
	for id, number := range numbers {
		games = append(games, id)
		calls = append(calls, redisdb.ScriptCall{
			Keys: []string{keys.Ledger(id), keys.LedgerBase(id)}, Args: scripts.HistoryReadArgs{Number: number}.List(),
		})
	}
	found := make(map[int64]ledger, len(games))
	var first error
	for i, result := range s.db.RunScriptPipelined(ctx, scripts.HistoryRead, calls) {
		err := result.Failure
		if err == nil {
			err = result.Err(scripts.HistoryRead)
		}
		if err == nil {
			v := redisdb.NewValues("the ledger of game "+strconv.FormatInt(games[i], 10), result.Values)
			l := ledger{v.NextInt(), v.NextText(), v.NextText(), v.NextText(), v.NextInt()}
			if err = v.Err(); err == nil {
				found[games[i]] = l
				continue
			}
		}
		if first == nil {
			first = err
		}
	}
	return found, first
}

// readNonces passes the nonces of the entries of a ledger from one number up to another, or to the
// end for 0, while so many entries have left it; else it returns errOvertaken.
func (s store) readNonces(ctx context.Context, gameID, base, first, last int64, visit func(nonce string)) error {
	end := int64(-1)
	if last > 0 {
		end = last - base - 1
	}
	var baseReply *redis.StringCmd
	var page *redis.StringSliceCmd
	_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		baseReply = p.Get(ctx, keys.LedgerBase(gameID))
		page = p.LRange(ctx, keys.Ledger(gameID), first-base-1, end)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: no entry was removed yet
		return redisdb.WrapError("read the ledger", err)
	}
	found, err := baseReply.Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return redisdb.WrapError("read the ledger", err)
	}
	if found != base {
		return errOvertaken
	}
	for _, entry := range page.Val() {
		_, rest, _ := strings.Cut(entry, "|")
		nonce, _, _ := strings.Cut(rest, "|")
		visit(nonce)
	}
	return nil
}

// Loss is what a game is known to have lost in one epoch.
type Loss struct {
	Epoch   int64 `json:"epoch"`
	GameID  int64 `json:"gameId"`
	Known   int64 `json:"known"`   // number of the last ledger entry that was there
	Present int64 `json:"present"` // number of the last one that was left
	// Acknowledged is how many of the lost entries the nodes had acknowledged to callers. It is nil
	// when no node knows: those that made the entries ended before the loss was noticed.
	Acknowledged *int64    `json:"acknowledged"`
	At           time.Time `json:"at"` // when a node noticed
}

// Entries returns how many entries are missing at least.
func (l Loss) Entries() int64 {
	entries := max(1, l.Known-l.Present)
	if l.Acknowledged != nil {
		entries = max(entries, *l.Acknowledged)
	}
	return entries
}

// IsUnacknowledged reports whether no running node had acknowledged any of the lost entries.
func (l Loss) IsUnacknowledged() bool { return l.Acknowledged != nil && *l.Acknowledged == 0 }

// lossArgs returns the arguments by which scripts write down losses.
func lossArgs(losses []Loss) (args []any) {
	for _, l := range losses {
		acknowledged := ""
		if l.Acknowledged != nil {
			acknowledged = strconv.FormatInt(*l.Acknowledged, 10)
		}
		args = append(args, l.GameID, l.Known, l.Present, acknowledged)
	}
	return args
}

// advance begins the epoch after a known one and stores the losses that a node found. It returns
// the epoch.
func (s store) advance(ctx context.Context, node string, known int64, losses []Loss) (int64, error) {
	args := scripts.HistoryAdvanceArgs{KnownEpoch: known, AtMS: time.Now().UnixMilli(), Node: node}.List(
		lossArgs(losses)...)
	reply, err := s.db.RunScript(ctx, scripts.HistoryAdvance, []string{keys.Meta(), keys.HistoryLosses()}, args...)
	if err == nil {
		err = reply.Err(scripts.HistoryAdvance)
	}
	if err != nil {
		return 0, err
	}
	v := redisdb.NewValues("the epoch", reply.Values)
	return v.NextInt(), v.Err()
}

func (s store) readLosses(ctx context.Context) ([]Loss, error) {
	all, err := s.db.Client.HGetAll(ctx, keys.HistoryLosses()).Result()
	if err != nil {
		return nil, redisdb.WrapError("read the losses", err)
	}
	return decodeLosses(all)
}

// readMetaAndLosses reads both at one instant: a halt and its losses are written together.
func (s store) readMetaAndLosses(ctx context.Context) (meta, []Loss, error) {
	var metaReply, lossReply *redis.MapStringStringCmd
	_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		metaReply, lossReply = p.HGetAll(ctx, keys.Meta()), p.HGetAll(ctx, keys.HistoryLosses())
		return nil
	})
	if err != nil {
		return meta{}, nil, redisdb.WrapError("read the history of the store", err)
	}
	m, err := decodeMeta(metaReply.Val())
	if err != nil {
		return meta{}, nil, err
	}
	losses, err := decodeLosses(lossReply.Val())
	return m, losses, err
}

func decodeLosses(all map[string]string) ([]Loss, error) {
	list := make([]Loss, 0, len(all))
	for field, text := range all {
		epoch, game, _ := strings.Cut(field, ":")
		v := redisdb.NewValues("a loss", append([]string{epoch, game}, strings.Split(text, "|")...))
		l := Loss{Epoch: v.NextInt(), GameID: v.NextInt(), Known: v.NextInt(), Present: v.NextInt(), At: v.NextTime()}
		if v.Remaining() > 0 { // a node of an earlier release writes no counts
			l.Acknowledged = sumCounts(v.NextText())
		}
		if v.Err() != nil {
			return nil, v.Err()
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b Loss) int { return a.At.Compare(b.At) })
	return list, nil
}

// sumCounts returns the sum of "<node>=<count>;…", nil for none.
func sumCounts(text string) (sum *int64) {
	for count := range strings.SplitSeq(text, ";") {
		_, digits, ok := strings.Cut(count, "=")
		n, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil {
			continue
		}
		if sum == nil {
			sum = new(int64)
		}
		*sum += n
	}
	return sum
}

// halt stops money on all nodes, and stores the losses that this node found under an epoch. It
// returns false if an operator accepted the store in the meantime.
func (s store) halt(
	ctx context.Context, node string, seenEpoch int64, record Halt, epoch int64, missing []Loss,
) (bool, error) {
	text, err := wire.Marshal(record)
	if err != nil {
		return false, err
	}
	args := scripts.HistoryStopArgs{
		SeenEpoch: seenEpoch, Stop: text, MissingEpoch: epoch, AtMS: time.Now().UnixMilli(), Node: node,
	}.List(lossArgs(missing)...)
	reply, err := s.db.RunScript(ctx, scripts.HistoryStop, []string{keys.Meta(), keys.HistoryLosses()}, args...)
	return err == nil && reply.Status == scripts.OK, err
}

var errOvertaken = errors.New("the store has changed meanwhile; look at it again")

// accept makes what the store has the history. It returns the installation and the new epoch.
func (s store) accept(ctx context.Context, m meta, stopped Halt) (installation string, epoch int64, err error) {
	reply, err := s.db.RunScript(ctx, scripts.HistoryAccept, []string{keys.Meta()},
		scripts.HistoryAcceptArgs{
			NewName: secret.New()[:16], LeastEpoch: stopped.Epoch, FormerName: stopped.Installation,
			SeenEpoch: m.epoch,
		}.List()...)
	switch {
	case err != nil:
		return "", 0, err
	case reply.Status == scripts.Stale:
		return "", 0, errOvertaken
	}
	v := redisdb.NewValues("the accepted store", reply.Values)
	installation, epoch = v.NextText(), v.NextInt()
	return installation, epoch, v.Err()
}

// markTags are the hash tags of the marks on a Cluster.
var markTags = redisdb.SpreadTags("h", 3)

// readMarks returns the texts of the marks on a Cluster.
func (s store) readMarks(ctx context.Context) (texts []string, err error) {
	if s.db.Kind() != redisdb.KindCluster {
		return nil, nil
	}
	for _, tag := range markTags {
		text, err := s.db.Client.Get(ctx, keys.HistoryMark(tag)).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, redisdb.WrapError("read a mark", err)
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	return texts, nil
}

// writeMarks writes a mark on a Cluster. One master that is down does not keep it from the others.
func (s store) writeMarks(ctx context.Context, text string) error {
	if s.db.Kind() != redisdb.KindCluster {
		return nil
	}
	var failed []error
	for _, tag := range markTags {
		if err := s.db.Client.Set(ctx, keys.HistoryMark(tag), text, 0).Err(); err != nil {
			failed = append(failed, fmt.Errorf("write the mark {%s}: %w", tag, err))
		}
	}
	return errors.Join(failed...)
}
