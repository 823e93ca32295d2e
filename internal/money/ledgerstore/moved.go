package ledgerstore

import (
	"maps"
	"sync"

	"github.com/parlor-games/parlor/internal/money/ledger"
)

// Moved is the entries and units that this node has folded, over all games. Each entry is folded by
// one node, so the sum over all nodes is all money that moved since they started.
type Moved struct {
	Entries int64            // ledger entries
	Units   map[string]int64 // minor units that came into an account, by code of the token; at most 2^63-1
}

// maxMovedTokens bounds Moved.Units; entries of further tokens are counted only.
const maxMovedTokens = 64

// Moved returns what this node has folded since it started.
func (s *Store) Moved() Moved { return s.moved.snapshot() }

// movedCounter adds up what this node folds. It is safe for concurrent use.
type movedCounter struct {
	mu      sync.Mutex
	entries int64
	units   map[string]int64
}

// add counts ledger entries that this node has folded.
func (m *movedCounter) add(entries []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries += int64(len(entries))
	for _, text := range entries {
		e := ledger.Decode(0, text)
		if _, known := m.units[e.Code]; !known && len(m.units) >= maxMovedTokens {
			continue
		}
		if m.units == nil {
			m.units = map[string]int64{}
		}
		for _, p := range e.Postings {
			if p.Units > 0 {
				m.units[e.Code] = ledger.AddBounded(m.units[e.Code], p.Units)
			}
		}
	}
}

func (m *movedCounter) snapshot() Moved {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Moved{Entries: m.entries, Units: maps.Clone(m.units)}
}
