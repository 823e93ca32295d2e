package webhooks

import (
	"sync/atomic"
	"time"
)

// Outcome is what came of a request to a target.
type Outcome string

// The outcomes.
const (
	OutcomeDelivered Outcome = "delivered"
	OutcomeRefused   Outcome = "refused" // a response other than 2xx
	OutcomeTimeout   Outcome = "timeout"
	OutcomeFailed    Outcome = "failed" // no response
)

// Outcomes are all outcomes.
var Outcomes = []Outcome{OutcomeDelivered, OutcomeRefused, OutcomeTimeout, OutcomeFailed}

// metrics counts what this node has done since its start.
type metrics struct {
	delivered, refused, timeouts, failed, parked atomic.Int64
	lag                                          atomic.Int64 // ns; of the targets of this leader
}

func (m *metrics) counter(o Outcome) *atomic.Int64 {
	switch o {
	case OutcomeDelivered:
		return &m.delivered
	case OutcomeRefused:
		return &m.refused
	case OutcomeTimeout:
		return &m.timeouts
	default:
		return &m.failed
	}
}

func (o outcome) kind() Outcome {
	switch {
	case o.isDelivered():
		return OutcomeDelivered
	case o.status != 0:
		return OutcomeRefused
	case o.err == errTimeout:
		return OutcomeTimeout
	default:
		return OutcomeFailed
	}
}

// CountRequests returns the requests of this node with an outcome since its start.
func (s *Service) CountRequests(o Outcome) int64 { return s.metrics.counter(o).Load() }

// CountParked returns the events that this node gave up since its start.
func (s *Service) CountParked() int64 { return s.metrics.parked.Load() }

// Lag returns the age of the oldest event that an active webhook waits for, 0 for none and for a
// node that does not deliver.
func (s *Service) Lag() time.Duration { return time.Duration(s.metrics.lag.Load()) }
