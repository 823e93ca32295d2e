package redisdb

import (
	"testing"
	"time"
)

// ReadLayouts makes this build read other layouts until the test ends.
func ReadLayouts(t *testing.T, oldest, newest int) {
	t.Helper()
	before := readable
	t.Cleanup(func() { readable = before })
	readable = layoutRange{oldest, newest}
}

// ReplayedCommands are the commands whose rights checkReplay asks for.
var ReplayedCommands = replayedCommands

// ForgetReplay makes the next probe ask again what every server can read back.
func (p *Prober) ForgetReplay() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, answer := range p.replay {
		answer.at = time.Now().Add(-replayInterval)
		p.replay[name] = answer
	}
}

// ServerErrorStarts returns what the errors start with that mean that a server does not serve.
func ServerErrorStarts() (starts []string) {
	for _, r := range serverErrors {
		starts = append(starts, r.start)
	}
	return starts
}
