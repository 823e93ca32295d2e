package scripts

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
)

//go:embed *.lua
var files embed.FS

// LibraryPrefix starts the file names of libraries.
const LibraryPrefix = "lib_"

// Script is one atomic change of state, ready to be sent.
type Script struct {
	Header // its own, preceded by the KEYS and ARGV of the libraries
	Text   // for a store with the newest layout

	Libraries []Header // those that it includes, in their order
	OwnArgs   Params   // those of the header alone

	// NonceArg is the place of the nonce of the call in ARGV, from 0; -1 when there is none.
	NonceArg int

	older    []olderText // the oldest first; none for a script that writes the same into every store
	withFeed *Script     // nil for a script that emits no event of a feed
}

// WithFeed returns the script for a room or a tournament that feeds its game's server. It takes the
// head of the feed and the feed behind all other keys, and appends there what it emits. It is
// another text, so that rooms without a feed pay nothing. It is nil for a script that emits no
// event which feeds have.
func (s *Script) WithFeed() *Script { return s.withFeed }

// withoutFeed lists the scripts that emit only events which no feed has.
var withoutFeed = []string{
	"room_state_set", "room_turn_set", "room_turn_skip", "presence_set", "save_write", "user_match",
}

// FeedLibrary is the library with which the text with a feed starts. No script includes it.
const FeedLibrary = "feed"

// feedMark begins a line of a library that only the text with a feed has.
const feedMark = "--@feed "

// withoutFeedLines returns a source without the lines that begin with feedMark.
func withoutFeedLines(source string) string {
	if !strings.Contains(source, feedMark) {
		return source
	}
	var b strings.Builder
	for line := range strings.Lines(source) {
		if !strings.HasPrefix(strings.TrimLeft(line, " "), feedMark) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Text is a script as the store gets it.
type Text struct {
	Source string // flags, libraries and body with their layouts expanded, as Redis gets them
	SHA    string // SHA-1 of Source in hexadecimal, as EVALSHA expects it

	// The same without the line of the flags, which the embedded store cannot read.
	EmbeddedSource, EmbeddedSHA string
}

// olderText is the text of a script for stores below a layout.
type olderText struct {
	below int
	text  Text
}

// TextFor returns the text for a store that has a layout.
func (s *Script) TextFor(storeLayout int) *Text {
	for i := range s.older {
		if storeLayout < s.older[i].below {
			return &s.older[i].text
		}
	}
	return &s.Text
}

var scriptsByName = map[string]*Script{}

// All returns every script by its name.
func All() map[string]*Script { return scriptsByName }

// mustLoad loads a script at start-up. It panics when the header cannot be read: the sources are
// part of the binary, and every test of the package loads them all.
func mustLoad(name string) *Script {
	s, err := Load(files, name)
	if err != nil {
		panic("scripts: " + err.Error())
	}
	scriptsByName[name] = s
	return s
}

// Load reads a script and the libraries that it includes, files without ".lua" in their names.
func Load(files fs.FS, name string) (*Script, error) {
	body, err := fs.ReadFile(files, name+".lua")
	if err != nil {
		return nil, err
	}
	own, err := ParseHeader(name, string(body))
	if err != nil {
		return nil, err
	}
	var keys, args Params
	var libraries []Header
	var source strings.Builder
	for _, include := range own.Includes {
		text, err := fs.ReadFile(files, LibraryPrefix+include+".lua")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		library, err := ParseHeader(LibraryPrefix+include, string(text))
		if err != nil {
			return nil, err
		}
		libraries = append(libraries, library)
		keys, args = keys.add(library.Keys), args.add(library.Args)
		source.WriteString(library.Locals())
		source.Write(text)
	}
	source.WriteString(own.Locals())
	ownArgs := own.Args
	own.Keys, own.Args = keys.add(own.Keys), args.add(own.Args)
	for label, p := range map[string]Params{"KEYS": own.Keys, "ARGV": own.Args} {
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, label, err)
		}
	}
	source.WriteString(own.ExpandPositions(string(body)))
	if err := own.checkLedger(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, flag := range own.Flags {
		if flag != AllowOOM && flag != NoWrites {
			return nil, fmt.Errorf("%s: there is no flag %s", name, flag)
		}
	}
	script := &Script{Header: own, Libraries: libraries, OwnArgs: ownArgs, NonceArg: own.nonceArg()}
	if err := script.setTexts(withoutFeedLines(source.String())); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if strings.Contains(source.String(), feedMark) && !slices.Contains(withoutFeed, name) {
		feed, err := fs.ReadFile(files, LibraryPrefix+FeedLibrary+".lua")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		withFeed := *script
		if err := withFeed.setTexts(string(feed) + strings.ReplaceAll(source.String(), feedMark, "")); err != nil {
			return nil, fmt.Errorf("%s with a feed: %w", name, err)
		}
		script.withFeed = &withFeed
	}
	return script, nil
}

// setTexts makes the texts of a script for stores with each layout.
func (s *Script) setTexts(source string) (err error) {
	if s.Text, err = newText(s.Flags, source, math.MaxInt); err != nil {
		return err
	}
	s.older = nil
	for _, number := range packedSince(source) {
		text, err := newText(s.Flags, source, number-1)
		if err != nil {
			return err
		}
		s.older = append(s.older, olderText{number, text})
	}
	return nil
}

// newText returns the text of a script for a store that has a layout.
func newText(flags []string, source string, storeLayout int) (Text, error) {
	expanded, err := ExpandLayouts(source, storeLayout)
	if err != nil {
		return Text{}, err
	}
	flagged := flagLine(flags) + expanded
	return Text{Source: flagged, SHA: digest(flagged), EmbeddedSource: expanded, EmbeddedSHA: digest(expanded)}, nil
}

// flagLine returns the first line of a script. With it Redis checks before the script runs whether
// it has the memory for it. Without it the first command that needs memory is refused, and none
// after a command that has written.
func flagLine(flags []string) string {
	if len(flags) == 0 {
		return "#!lua\n"
	}
	return "#!lua flags=" + strings.Join(flags, ",") + "\n"
}

func digest(source string) string {
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}
