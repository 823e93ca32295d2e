package web

import (
	"embed"
	"io/fs"
	"sync"
)

//go:embed all:dist
var dist embed.FS

// Docs returns the documentation, at /docs. With dev its page /docs/try sends requests to the node;
// it is the only page of /docs that may.
func Docs(dev bool) *Site {
	if dev {
		return devDocs()
	}
	return docs()
}

var (
	docs    = section("docs", policy{}, dropTryPage)
	devDocs = section("docs", policy{}, enableTryPage)
)

const (
	tryPage    = "try"
	devTryPage = "try.dev"
)

func dropTryPage(s *Site) { delete(s.files, devTryPage) }

func enableTryPage(s *Site) {
	s.files[tryPage] = s.files[devTryPage]
	s.files[tryPage].policy = policy{connect: true}
	delete(s.files, devTryPage)
}

// section returns a function that reads a section of dist once, and changes it.
func section(name string, p policy, changes ...func(*Site)) func() *Site {
	return sync.OnceValue(func() *Site {
		files, err := fs.Sub(dist, "dist/"+name)
		if err != nil {
			panic("web: " + err.Error()) // the name is a constant
		}
		s, err := newSite("/"+name, files, p)
		if err != nil {
			panic("web: " + err.Error()) // embedded files can be read
		}
		for _, change := range changes {
			change(s)
		}
		return s
	})
}
