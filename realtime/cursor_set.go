package realtime

import "slices"

// cursorSet has the cursors of a client, one for each topic. A client with few has a list alone, so
// that ten thousand players cost no map each.
type cursorSet struct {
	list    []*cursor          // in any order
	byTopic map[string]*cursor // nil while the list is short
	counted int                // those that are not Subscription.Implicit
}

// maxScannedCursors is up to how many cursors a list is searched from its start.
const maxScannedCursors = 64

// find returns the cursor of a topic, nil for none.
func (s *cursorSet) find(topic string) *cursor {
	if s.byTopic != nil {
		return s.byTopic[topic]
	}
	i := slices.IndexFunc(s.list, func(cur *cursor) bool { return cur.topic.name == topic })
	if i < 0 {
		return nil
	}
	return s.list[i]
}

// put adds a cursor. It returns the cursor of the same topic that it replaces, nil for none.
func (s *cursorSet) put(cur *cursor) (replaced *cursor) {
	if replaced = s.find(cur.topic.name); replaced != nil {
		s.count(replaced, -1)
		cur.place = replaced.place
		s.list[cur.place] = cur
	} else {
		cur.place = len(s.list)
		s.list = append(s.list, cur)
	}
	s.count(cur, 1)
	switch {
	case s.byTopic != nil:
		s.byTopic[cur.topic.name] = cur
	case len(s.list) > maxScannedCursors:
		s.byTopic = make(map[string]*cursor, 2*len(s.list))
		for _, each := range s.list {
			s.byTopic[each.topic.name] = each
		}
	}
	return replaced
}

// remove removes a cursor that is in the set.
func (s *cursorSet) remove(cur *cursor) {
	s.count(cur, -1)
	last := len(s.list) - 1
	moved := s.list[last]
	s.list[cur.place], moved.place = moved, cur.place
	s.list[last] = nil
	s.list = s.list[:last]
	delete(s.byTopic, cur.topic.name)
}

func (s *cursorSet) count(cur *cursor, n int) {
	if !cur.sub.Implicit {
		s.counted += n
	}
}
