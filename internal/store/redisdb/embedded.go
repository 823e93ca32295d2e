package redisdb

import (
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// embedded is miniredis with a running clock: without one its keys never expire.
type embedded struct {
	server *miniredis.Miniredis
	quit   chan struct{}
	clock  sync.WaitGroup
}

const embeddedTick = 100 * time.Millisecond

func openEmbedded() (*DB, error) {
	server, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("start the embedded store: %w", err)
	}
	e := &embedded{server: server, quit: make(chan struct{})}
	e.clock.Go(e.runClock)
	db, err := newDB(func() redis.UniversalClient {
		return redis.NewClient(&redis.Options{
			Addr: server.Addr(), DialTimeout: dialTimeout, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout,
			MaxRetries: maxRetries, ContextTimeoutEnabled: true, DialerRetries: dialAttempts, Protocol: respVersion,
			MaintNotificationsConfig: noNotices(),
		})
	}, KindEmbedded, "", newAccess(access{}))
	if err != nil {
		return nil, err
	}
	db.embedded = e
	return db, nil
}

// runClock advances the times to live by the time that has passed.
func (e *embedded) runClock() {
	tick := time.NewTicker(embeddedTick)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-e.quit:
			return
		case now := <-tick.C:
			e.server.FastForward(now.Sub(last))
			last = now
		}
	}
}

func (e *embedded) stop() {
	close(e.quit)
	e.clock.Wait()
	e.server.Close()
}
