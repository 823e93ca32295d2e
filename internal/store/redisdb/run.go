package redisdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// RunScript runs a script and returns its reply. A status that is an error code is not an error
// here: only the caller knows what the values after it mean. RunScript returns store_unavailable
// when the store cannot be reached or money is stopped, and outcome_unknown when a required replica
// has not confirmed the change: it may be lost with its server.
func (db *DB) RunScript(ctx context.Context, s *scripts.Script, keys []string, args ...any) (Reply, error) {
	if err := db.allow(s, keys); err != nil {
		return Reply{}, err
	}
	source, sha := db.textOf(s)
	pipeline := db.pipelineOf(s)
	began := db.economies.began(s)
	value, err := pipeline.EvalSha(ctx, sha, keys, args).Result()
	if isUnknownScript(err) {
		value, err = pipeline.Eval(ctx, source, keys, args).Result()
	}
	reply, err := newReply(s, value, err)
	if err == nil {
		db.economies.acknowledge(s, began, keys, args, reply)
		db.noteSkew(reply)
	}
	return reply, err
}

// RunScriptAndRead runs a script and then reads a hash of the same hash tag, in one round trip. It
// returns the hash as it was after the script, or after a later change by others; empty when it
// does not exist. It returns the errors of RunScript; the script may have run then.
func (db *DB) RunScriptAndRead(
	ctx context.Context, s *scripts.Script, hash string, keys []string, args ...any,
) (Reply, Hash, error) {
	if err := db.allow(s, keys); err != nil {
		return Reply{}, nil, err
	}
	source, sha := db.textOf(s)
	pipeline := db.pipelineOf(s)
	began := db.economies.began(s)
	run, read := pipeline.EvalShaThenHGetAll(ctx, sha, keys, args, hash)
	value, err := run.Result()
	if isUnknownScript(err) {
		run, read = pipeline.EvalThenHGetAll(ctx, source, keys, args, hash)
		value, err = run.Result()
	}
	reply, err := newReply(s, value, err)
	if err != nil {
		return Reply{}, nil, err
	}
	db.economies.acknowledge(s, began, keys, args, reply)
	db.noteSkew(reply)
	fields, err := read.Result()
	if err != nil {
		return reply, nil, WrapError("read after "+s.Name, err)
	}
	return reply, fields, nil
}

// isUnknownScript reports whether the server must get the text of the script. To ask go-redis about
// nil costs an allocation.
func isUnknownScript(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") }

// textOf returns the text of a script that the store understands, and its sum.
func (db *DB) textOf(s *scripts.Script) (source, sha string) {
	text := s.TextFor(db.Layout())
	if db.kind == KindEmbedded {
		return text.EmbeddedSource, text.EmbeddedSHA
	}
	return text.Source, text.SHA
}

// allow returns nil when a script may run, else why not.
func (db *DB) allow(s *scripts.Script, keys []string) error {
	if err := db.allowLayout(s); err != nil {
		return err
	}
	return db.economies.allow(s, keys)
}

// ScriptCall is one of several runs of a script.
type ScriptCall struct {
	Keys     []string
	Args     []any
	WithFeed bool // the text of scripts.Script.WithFeed runs
}

// scriptOf returns the script whose text the call runs.
func (c ScriptCall) scriptOf(s *scripts.Script) *scripts.Script {
	if c.WithFeed {
		return s.WithFeed()
	}
	return s
}

// ScriptResult is what one of several runs of a script returned.
type ScriptResult struct {
	Reply
	Failure error // of this call alone, as of RunScript; nil for a reply
}

// Args returns values of one type as arguments of a script.
func Args[T any](list []T) []any {
	args := make([]any, len(list))
	for i, value := range list {
		args[i] = value
	}
	return args
}

// RunScriptPipelined runs a script once for each call, in one round trip to each server, and
// returns the results in their order. A call that failed may have run.
func (db *DB) RunScriptPipelined(ctx context.Context, s *scripts.Script, calls []ScriptCall) []ScriptResult {
	client := db.clientOf(s)
	began := db.economies.began(s)
	results := make([]ScriptResult, len(calls))
	commands := make([]*redis.Cmd, len(calls)) // nil for a call that is not admitted
	var missing []int                          // calls to servers that do not know the script yet
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, call := range calls {
			if results[i].Failure = db.allow(s, call.Keys); results[i].Failure == nil {
				_, sha := db.textOf(call.scriptOf(s))
				commands[i] = p.EvalSha(ctx, sha, call.Keys, call.Args...)
			}
		}
		return nil
	})
	for i, command := range commands {
		if err != nil && command != nil && isUnknownScript(command.Err()) {
			missing = append(missing, i)
		}
	}
	if len(missing) > 0 {
		_, _ = client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, i := range missing {
				source, _ := db.textOf(calls[i].scriptOf(s))
				commands[i] = p.Eval(ctx, source, calls[i].Keys, calls[i].Args...)
			}
			return nil
		})
	}
	for i, command := range commands {
		if command != nil {
			value, err := command.Result()
			results[i].Reply, results[i].Failure = newReply(s, value, err)
			if results[i].Failure == nil {
				db.economies.acknowledge(s, began, calls[i].Keys, calls[i].Args, results[i].Reply)
				db.noteSkew(results[i].Reply)
			}
		}
	}
	return results
}

// newReply decodes a reply: an array of texts, or one text for a status without values, which costs
// the store less.
func newReply(s *scripts.Script, value any, err error) (Reply, error) {
	if err != nil {
		return Reply{}, WrapError("run "+s.Name, err)
	}
	if status, ok := value.(string); ok {
		return Reply{Status: status}, nil
	}
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return Reply{}, fmt.Errorf("run %s: the reply has no status", s.Name)
	}
	values := make([]string, len(list))
	for i, v := range list {
		if values[i], ok = v.(string); !ok {
			return Reply{}, fmt.Errorf("run %s: value %d of the reply is no text", s.Name, i)
		}
	}
	return Reply{Status: values[0], Values: values[1:]}, nil
}

// WrapError prefixes err with the operation, such as "read the wallet"; nil stays nil. It adds
// store_unavailable for an outage and store_full for a store without memory. It returns redis.Nil
// unchanged.
func WrapError(operation string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redis.Nil):
		return redis.Nil
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", operation, err)
	case errors.Is(err, errUnconfirmed):
		return fmt.Errorf("%s: %w (%w)", operation, apierror.OutcomeUnknown, err)
	case serverErrorCode(err) == apierror.StoreFull:
		return fmt.Errorf("%s: %w (%w)", operation, apierror.StoreFull, err)
	case isOutage(err):
		return fmt.Errorf("%s: %w (%w)", operation, apierror.StoreUnavailable, err)
	default:
		return fmt.Errorf("%s: %w", operation, err)
	}
}

var outageErrors = []error{
	io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded,
	redis.ErrClosed, redis.ErrPoolTimeout, redis.ErrPoolExhausted,
	redis.ErrAutoPipelineQueueFull,
}

// isOutage reports whether the store could not be reached or could not do the command, so that the
// same request may succeed later.
func isOutage(err error) bool {
	var network net.Error
	if errors.As(err, &network) || slices.ContainsFunc(outageErrors, func(e error) bool { return errors.Is(err, e) }) {
		return true
	}
	return serverErrorCode(err) == apierror.StoreUnavailable
}
