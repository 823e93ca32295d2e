package rooms

import "context"

// ApplyEnded applies what the node has ended and ends, until ctx ends: the part of Run that does.
func (s *Service) ApplyEnded(ctx context.Context) { s.store.applyQueued(ctx) }
