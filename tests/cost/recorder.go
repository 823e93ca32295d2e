package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// recorder is a hook of the store's client. It records the commands that a method sends, and can
// hold the method's script back: the script is then not sent, so that the harness can send it alone
// while it counts.
type recorder struct {
	mu      sync.Mutex
	holding bool
	sent    [][]any // commands in their order, those held back excluded
	held    [][]any // what was held back
}

// errHeld is the error that a method gets whose script was held back.
var errHeld = errors.New("the script is held back")

// isScript reports whether a command runs a script.
func isScript(args []any) bool {
	return slices.Contains([]any{"eval", "evalsha", "fcall"}, args[0])
}

// record calls a method and returns the commands that it sent.
func (r *recorder) record(verb func() error) (sent [][]any, err error) {
	sent, _, err = r.watch(false, verb)
	return sent, err
}

// hold calls a method, holds its script back with what the method sends together with it, and
// returns these commands, the script first.
func (r *recorder) hold(verb func() error) (commands [][]any, err error) {
	_, held, err := r.watch(true, verb)
	first := slices.IndexFunc(held, isScript)
	if first < 0 {
		return nil, errors.Join(errors.New("the verb sends no script"), err)
	}
	return held[first:], nil // before it may be what a method before this one did not wait for
}

func (r *recorder) watch(holding bool, verb func() error) (sent, held [][]any, err error) {
	r.mu.Lock()
	r.holding, r.sent, r.held = holding, nil, nil
	r.mu.Unlock()
	err = verb()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holding = false
	return r.sent, r.held, err
}

// sentCount returns the number of commands sent since the last method was recorded.
func (r *recorder) sentCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sent)
}

// intercept records commands that are about to be sent together. It reports whether they are held
// back.
func (r *recorder) intercept(cmds ...redis.Cmder) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	runsScript := func(c redis.Cmder) bool { return isScript(c.Args()) }
	if r.holding && slices.ContainsFunc(cmds, runsScript) {
		for _, c := range cmds {
			r.held = append(r.held, c.Args())
			c.SetErr(errHeld)
		}
		return true
	}
	for _, c := range cmds {
		r.sent = append(r.sent, c.Args())
	}
	return false
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if r.intercept(cmd) {
			return errHeld
		}
		return next(ctx, cmd)
	}
}

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if r.intercept(cmds...) {
			return errHeld
		}
		return next(ctx, cmds)
	}
}
