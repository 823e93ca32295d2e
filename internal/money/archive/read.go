package archive

import (
	"context"
	"iter"
)

// readAhead is how many segments are fetched at a time: S3 takes long to start.
const readAhead = 8

// Segments returns the segments of a game with the entries first to last, in their order. It ends
// after the first error. A missing segment is ErrNotFound.
func (a *Archive) Segments(ctx context.Context, gameID, first, last int64) iter.Seq2[Segment, error] {
	type result struct {
		segment Segment
		err     error
	}
	return func(yield func(Segment, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		fetched := make(chan chan result, readAhead)
		ended := make(chan struct{})
		defer func() { cancel(); <-ended }()
		go func() {
			defer close(ended)
			defer close(fetched)
			for next := a.FirstOf(first); next <= last; next += a.sizes.Entries {
				one := make(chan result, 1)
				select {
				case fetched <- one:
				case <-ctx.Done():
					return
				}
				go func() {
					s, err := a.ReadSegment(ctx, gameID, next)
					one <- result{s, err}
				}()
			}
		}()
		for one := range fetched {
			r := <-one
			if !yield(r.segment, r.err) || r.err != nil {
				return
			}
		}
		if ctx.Err() != nil {
			yield(Segment{}, ctx.Err())
		}
	}
}
