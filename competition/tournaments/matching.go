package tournaments

// augment pairs as many players as possible without a repeat, so that a repeat is left only where
// no pairing of the round is without one. A paired player stays paired, maybe with another
// opponent. It is Edmonds' blossom algorithm.
func (f *swissRound) augment(mate []int) {
	for i := range mate {
		if mate[i] == unpaired {
			s := newBlossomSearch(f, mate)
			if end := s.findPath(i); end != unpaired {
				s.flip(end)
			}
		}
	}
}

// blossomSearch looks for an augmenting path: one on which pairs and possible meetings take turns,
// between two players who are unpaired. Paths grow from the first player in a tree. An odd cycle in
// it, a blossom, counts as one player: its base.
type blossomSearch struct {
	field  *swissRound
	mate   []int
	base   []int  // of the blossom that a player is in
	parent []int  // in the tree, of a player at an odd distance
	isEven []bool // in the tree at an even distance: the path may go on from here
	queue  []int
}

func newBlossomSearch(f *swissRound, mate []int) *blossomSearch {
	n := len(mate)
	s := &blossomSearch{field: f, mate: mate, base: make([]int, n), parent: make([]int, n), isEven: make([]bool, n)}
	for i := range n {
		s.base[i], s.parent[i] = i, unpaired
	}
	return s
}

// findPath returns the other end of an augmenting path from a player, or unpaired.
func (s *blossomSearch) findPath(root int) int {
	s.isEven[root] = true
	s.queue = append(s.queue, root)
	for len(s.queue) > 0 {
		v := s.queue[0]
		s.queue = s.queue[1:]
		for to := range s.mate {
			switch {
			case to == v || s.base[v] == s.base[to] || s.mate[v] == to || !s.field.canMeet(v, to):
			case to == root || s.mate[to] != unpaired && s.parent[s.mate[to]] != unpaired:
				s.contract(v, to)
			case s.parent[to] == unpaired:
				s.parent[to] = v
				if s.mate[to] == unpaired {
					return to
				}
				s.isEven[s.mate[to]] = true
				s.queue = append(s.queue, s.mate[to])
			}
		}
	}
	return unpaired
}

// contract makes one player of the odd cycle that the meeting of two players closes.
func (s *blossomSearch) contract(v, to int) {
	base := s.commonBase(v, to)
	inBlossom := make([]bool, len(s.mate))
	s.markPath(inBlossom, v, base, to)
	s.markPath(inBlossom, to, base, v)
	for i := range s.base {
		if inBlossom[s.base[i]] {
			s.base[i] = base
			if !s.isEven[i] {
				s.isEven[i] = true
				s.queue = append(s.queue, i)
			}
		}
	}
}

// commonBase returns the nearest base that is on the paths of two players to the root.
func (s *blossomSearch) commonBase(a, b int) int {
	onPath := make([]bool, len(s.mate))
	for {
		a = s.base[a]
		onPath[a] = true
		if s.mate[a] == unpaired {
			break // the root
		}
		a = s.parent[s.mate[a]]
	}
	for b = s.base[b]; !onPath[b]; b = s.base[s.parent[s.mate[b]]] {
	}
	return b
}

// markPath marks the blossoms on the path from a player to a base, and turns its parents so that
// the path can be walked from the other side of the cycle.
func (s *blossomSearch) markPath(inBlossom []bool, v, base, child int) {
	for s.base[v] != base {
		inBlossom[s.base[v]], inBlossom[s.base[s.mate[v]]] = true, true
		s.parent[v] = child
		child = s.mate[v]
		v = s.parent[s.mate[v]]
	}
}

// flip pairs the players along an augmenting path the other way round.
func (s *blossomSearch) flip(end int) {
	for end != unpaired {
		previous := s.parent[end]
		next := s.mate[previous]
		s.mate[end], s.mate[previous] = previous, end
		end = next
	}
}
