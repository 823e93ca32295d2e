package games

import (
	"context"
	"slices"
	"sync"
	"time"
)

// allOriginsCache holds every pattern that any game lists, read at most cacheTTL ago.
type allOriginsCache struct {
	mu       sync.Mutex
	patterns []string
	readAt   time.Time // zero: not read yet, or expired by a change
}

// OriginAllowed reports whether any game lists a page's origin. It is for a browser's preflight,
// which has neither a caller nor a game. What other nodes changed is seen within a second.
func (s *Service) OriginAllowed(ctx context.Context, origin string) (bool, error) {
	s.origins.mu.Lock()
	defer s.origins.mu.Unlock()
	if time.Since(s.origins.readAt) >= cacheTTL {
		if err := s.loadOrigins(ctx); err != nil {
			return false, err
		}
	}
	return slices.ContainsFunc(s.origins.patterns, func(pattern string) bool { return matchOrigin(pattern, origin) }), nil
}

func (s *Service) loadOrigins(ctx context.Context) error {
	const batchSize = 256
	readAt := time.Now()
	listed := map[string]bool{}
	for after := int64(0); ; {
		batch, next, err := s.list(ctx, after, batchSize)
		if err != nil {
			return err
		}
		for _, g := range batch {
			for _, pattern := range g.Origins {
				listed[pattern] = true
			}
		}
		if next == 0 {
			break
		}
		after = next
	}
	s.origins.patterns = s.origins.patterns[:0]
	for pattern := range listed {
		s.origins.patterns = append(s.origins.patterns, pattern)
	}
	s.origins.readAt = readAt
	return nil
}

// expire makes this node see its own change of a game at once.
func (o *allOriginsCache) expire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readAt = time.Time{}
}
