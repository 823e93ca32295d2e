package web

import (
	"embed"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/parlor-games/parlor/sdk"
)

//go:embed all:dist
var dist embed.FS

// Docs returns the documentation, at /docs. With dev, /docs/try may send requests to the node, and
// the examples are played in frames; no other page of /docs may do that.
func Docs(dev bool) *Site {
	if dev {
		return devDocs()
	}
	return docs()
}

var (
	docs    = section("docs", policy{}, dropDevPages)
	devDocs = section("docs", policy{}, enableDevPages)
)

// devPage is the end of the name of a page that takes the place of another in developer mode.
const devPage = ".dev"

func dropDevPages(s *Site) {
	for name := range s.files {
		if strings.HasSuffix(name, devPage) {
			delete(s.files, name)
		}
	}
}

func enableDevPages(s *Site) {
	for name, f := range s.files {
		place, ok := strings.CutSuffix(name, devPage)
		if !ok {
			continue
		}
		switch {
		case path.Base(place) == "frame":
			f.policy = policy{connect: true, framed: true}
		case path.Dir(place) == "examples":
			f.policy = policy{frames: true}
		default:
			f.policy = policy{connect: true}
		}
		s.files[place] = f
	}
	dropDevPages(s)
}

// Console returns the operator's console, at /console.
func Console() *Site { return console() }

var console = section("console", policy{connect: true})

// Play returns the demo, at /play, which needs the game of a development node. Without dev it is a
// single page that explains this.
func Play(dev bool) *Site {
	if dev {
		return devPlay()
	}
	return play()
}

var (
	play    = section("play", policy{}, func(s *Site) { delete(s.files, "") })
	devPlay = section("play", policy{connect: true})
)

// SDK returns the browser SDK, at /sdk, which pages of every origin may load.
func SDK() *Site { return sdkFiles() }

var sdkFiles = readOnce("/sdk", sdk.Files, "dist", policy{}, openToOrigins)

// numberedVersion matches the files of one release, which never change.
var numberedVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+\.m?js$`)

// packageExt is the end of the name of a package for npm, which is compressed already.
const packageExt = ".tgz"

// cacheMoving is for files that move with a release: a page gets a correction within five minutes.
const cacheMoving = "public, max-age=300"

func openToOrigins(s *Site) {
	s.open = true
	for name, f := range s.files {
		f.cacheControl = cacheMoving
		if numberedVersion.MatchString(name) {
			f.cacheControl = cacheForever
		}
		if path.Ext(name) == packageExt {
			f.cacheControl = cacheRevalidate // npm keeps what it may, and its lockfile refuses other bytes
			continue
		}
		f.gzip = compress(f.identity)
	}
}

// section returns a function that reads a section of dist once, and changes it.
func section(name string, p policy, changes ...func(*Site)) func() *Site {
	return readOnce("/"+name, dist, "dist/"+name, p, changes...)
}

// readOnce returns a function that reads a folder of embedded files once, and changes it.
func readOnce(prefix string, embedded embed.FS, folder string, p policy, changes ...func(*Site)) func() *Site {
	return sync.OnceValue(func() *Site {
		files, err := fs.Sub(embedded, folder)
		if err != nil {
			panic("web: " + err.Error()) // the folder is a constant
		}
		s, err := newSite(prefix, files, p)
		if err != nil {
			panic("web: " + err.Error()) // embedded files can be read
		}
		for _, change := range changes {
			change(s)
		}
		return s
	})
}
