// Package storecost counts what the store does for a request, so that handlers can charge for it.
package storecost

import (
	"context"
	"sync/atomic"
)

// Cost is what the store did for a request, as far as the node sees it: a script counts as
// ScriptCommands. It is safe for concurrent use.
type Cost struct{ commands, replyBytes atomic.Int64 }

// ScriptCommands is the number of commands that one script counts as, because a node cannot see the
// commands inside it. The largest of the counted scripts, board_submit, runs up to 17.
const ScriptCommands = 20

// Commands returns how many commands were sent. One that was sent again counts once.
func (u *Cost) Commands() int64 { return u.commands.Load() }

// ReplyBytes returns how many bytes their replies had, within a few for each value.
func (u *Cost) ReplyBytes() int64 { return u.replyBytes.Load() }

// Add counts commands and the bytes of replies. It does nothing when u is nil.
func (u *Cost) Add(commands, replyBytes int64) {
	if u != nil {
		u.commands.Add(commands)
		u.replyBytes.Add(replyBytes)
	}
}

type contextKey struct{}

// With returns a context whose commands are counted in u.
func With(ctx context.Context, u *Cost) context.Context {
	return context.WithValue(ctx, contextKey{}, u)
}

// Of returns where the commands of a context are counted, nil for nowhere.
func Of(ctx context.Context) *Cost {
	u, _ := ctx.Value(contextKey{}).(*Cost)
	return u
}
