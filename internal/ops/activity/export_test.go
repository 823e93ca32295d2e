package activity

import "context"

// SampleInTurn is what Run does at each tick.
func (s *Service) SampleInTurn(ctx context.Context) error { return s.store.lead(ctx, s.SampleAll) }
