package parlor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// PositionStore keeps how far a server has heard its feeds, so that it goes on there after a
// restart. One store belongs to one share: two servers never write the same one at a time.
type PositionStore interface {
	// Load returns the positions by the names of their feeds; none when there are none.
	Load(ctx context.Context) (map[string]string, error)
	// Save keeps all positions. It is called often, and never twice at a time.
	Save(ctx context.Context, positions map[string]string) error
}

// MemoryPositions returns a store that forgets with the process. A server with it begins with
// [Server.OnRoom]. It is the default.
func MemoryPositions() PositionStore { return memoryPositions{} }

type memoryPositions struct{}

func (memoryPositions) Load(context.Context) (map[string]string, error) { return nil, nil }
func (memoryPositions) Save(context.Context, map[string]string) error   { return nil }

// FilePositions returns a store in a file, which it replaces as a whole. The folder must exist.
func FilePositions(path string) PositionStore { return filePositions{path} }

type filePositions struct{ path string }

func (f filePositions) Load(context.Context) (map[string]string, error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var positions map[string]string
	err = json.Unmarshal(text, &positions)
	return positions, err
}

func (f filePositions) Save(_ context.Context, positions map[string]string) error {
	text, err := json.Marshal(positions)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), f.path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// feeds know how far each feed was heard, and how far it was handled.
type feeds struct {
	mu      sync.Mutex
	byName  map[string]*feed
	changed chan struct{} // has a value when something is to be saved
}

type feed struct {
	heard    string // position of the last event that came; "" for none
	heardSeq uint64 // its number; what is not above it came before. 0 after a gap: it may begin anew
	handled  string // everything up to here was handled
	open     []*entry
}

// entry is a position of a feed that is handled or not.
type entry struct {
	feed     *feed
	position string
	isDone   bool
}

func newFeeds() *feeds { return &feeds{byName: map[string]*feed{}, changed: make(chan struct{}, 1)} }

// restore begins with positions that were saved.
func (f *feeds) restore(saved map[string]string) {
	for name, position := range saved {
		f.byName[name] = &feed{heard: position, heardSeq: seqOf(position), handled: position}
	}
}

// seqOf returns the number of a position, 0 when it has none.
func seqOf(position string) uint64 {
	number, _, _ := strings.Cut(position, "-")
	seq, _ := strconv.ParseUint(number, 10, 64)
	return seq
}

// hear notes the next position of a feed. It returns nil for one that came before.
func (f *feeds) hear(name, position string) *entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := f.feed(name)
	seq := seqOf(position)
	if seq != 0 && seq <= own.heardSeq {
		return nil
	}
	return own.add(position, seq)
}

// begin notes the position where a feed goes on after a gap, or begins.
func (f *feeds) begin(name, position string) *entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.feed(name).add(position, 0)
}

func (f *feeds) feed(name string) *feed {
	own := f.byName[name]
	if own == nil {
		own = &feed{}
		f.byName[name] = own
	}
	return own
}

func (own *feed) add(position string, seq uint64) *entry {
	own.heard, own.heardSeq = position, seq
	e := &entry{feed: own, position: position}
	own.open = append(own.open, e)
	return e
}

// done notes that what is behind an entry was handled.
func (f *feeds) done(e *entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.isDone = true
	own := e.feed
	for len(own.open) > 0 && own.open[0].isDone {
		own.handled, own.open = own.open[0].position, own.open[1:]
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
}

// heardPositions returns where a subscription must resume: nothing that came is asked for again.
func (f *feeds) heardPositions() map[string]string {
	return f.positions(func(own *feed) string { return own.heard })
}

// handledPositions returns what may be saved.
func (f *feeds) handledPositions() map[string]string {
	return f.positions(func(own *feed) string { return own.handled })
}

func (f *feeds) positions(of func(*feed) string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	positions := make(map[string]string, len(f.byName))
	for name, own := range f.byName {
		if position := of(own); position != "" {
			positions[name] = position
		}
	}
	return positions
}
