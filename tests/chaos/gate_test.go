package chaos

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// A gate stands between a node and its store. It shows every single command of the node to a
// keeper, one after the other, who decides when it is executed and whether the node lives on. A
// transaction is one step; the commands of a pipeline are one each, since those of others may come
// in between.
type gate struct {
	mu     sync.Mutex // one step of a node at a time
	keeper keeper
}

// A keeper decides about a step of a node. do executes it and may be called more than once: the
// client resends what got no reply. An error instead of its result is what the node sees.
type keeper interface {
	step(name string, do func() error) error
}

// errKilled is what a node sees that is dead: nothing that it does reaches the store any more.
var errKilled = errors.New("the node is dead")

// stepTimeout replaces the time limit of a command: a node may be paused for longer.
const stepTimeout = 20 * time.Second

func (*gate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return g.pass(ctx, []redis.Cmder{cmd}, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "multi" {
			return g.pass(ctx, cmds, func(ctx context.Context) error { return next(ctx, cmds) })
		}
		var first error
		for i := range cmds {
			err := g.pass(ctx, cmds[i:i+1], func(ctx context.Context) error { return next(ctx, cmds[i:i+1]) })
			if first == nil {
				first = err
			}
		}
		return first
	}
}

// inside marks the context of a step: the client opens a connection by commands of its own.
type inside struct{}

// pass shows a step to the keeper, if there is one.
func (g *gate) pass(ctx context.Context, cmds []redis.Cmder, next func(context.Context) error) error {
	if ctx.Value(inside{}) != nil {
		return next(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.keeper == nil {
		return next(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.WithoutCancel(ctx), inside{}, true), stepTimeout)
	defer cancel()
	err := g.keeper.step(nameStep(cmds[0]), func() error { return next(ctx) })
	if errors.Is(err, errKilled) {
		for _, cmd := range cmds {
			cmd.SetErr(errKilled)
		}
	}
	return err
}

// scriptNames maps the sum of a script to its name.
var scriptNames = func() map[string]string {
	names := map[string]string{}
	for name, s := range scripts.All() {
		names[s.SHA], names[s.Source] = name, name
		if with := s.WithFeed(); with != nil {
			names[with.SHA], names[with.Source] = name, name
		}
	}
	return names
}()

// nameStep returns the name of the script that a command runs, else the command.
func nameStep(cmd redis.Cmder) string {
	args := cmd.Args()
	if name := cmd.Name(); name == "evalsha" || name == "eval" {
		if script, ok := args[1].(string); ok && scriptNames[script] != "" {
			return scriptNames[script]
		}
	}
	return cmd.Name()
}

// watch sets who decides about the steps of a node; nil for nobody.
func (g *gate) watch(k keeper) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keeper = k
}
