package web

import (
	"embed"
	"io/fs"
	"sync"
)

//go:embed all:dist
var dist embed.FS

// Docs returns the documentation, at /docs.
func Docs() *Site { return docs() }

var docs = section("docs", policy{})

// section returns a function that reads a section of dist once.
func section(name string, p policy) func() *Site {
	return sync.OnceValue(func() *Site {
		files, err := fs.Sub(dist, "dist/"+name)
		if err != nil {
			panic("web: " + err.Error()) // the name is a constant
		}
		s, err := newSite("/"+name, files, p)
		if err != nil {
			panic("web: " + err.Error()) // embedded files can be read
		}
		return s
	})
}
