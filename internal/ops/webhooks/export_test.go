package webhooks

import "context"

// Lead delivers by a fence until ctx ends, whoever holds the lock: a leader that does not know yet
// that it was replaced.
func (s *Service) Lead(ctx context.Context, fence int64) error { return s.lead(ctx, fence) }
