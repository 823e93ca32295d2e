package games

import (
	"context"
	"slices"
	"sync"
	"time"
)

// origins remembers for a second every pattern that any game lists.
type origins struct {
	mu       sync.Mutex
	patterns []string
	at       time.Time // zero: nothing is remembered
}

// OriginAllowed tells whether any game lists a page's origin. It answers a browser's preflight, which does not tell
// which game it is about; what other nodes changed is seen within a second.
func (s *Service) OriginAllowed(ctx context.Context, origin string) (bool, error) {
	s.origins.mu.Lock()
	defer s.origins.mu.Unlock()
	if time.Since(s.origins.at) >= freshFor {
		if err := s.gatherOrigins(ctx); err != nil {
			return false, err
		}
	}
	return slices.ContainsFunc(s.origins.patterns, func(pattern string) bool { return matchOrigin(pattern, origin) }), nil
}

func (s *Service) gatherOrigins(ctx context.Context) error {
	const batch = 256
	began := time.Now()
	listed := map[string]bool{}
	for after := int64(0); ; {
		some, next, err := s.List(ctx, after, batch)
		if err != nil {
			return err
		}
		for _, g := range some {
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
	s.origins.at = began
	return nil
}

// forget makes this node see its own change of a game at once.
func (o *origins) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at = time.Time{}
}
