// Package archtest holds the house rules: what CONTRIBUTING.md and the package comments promise about the
// whole project and no compiler checks. Every rule is a function from the sources to complaints, and every
// rule is shown to complain about a made-up source that breaks it.
package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/parlor-games/parlor"

// house is all sources of the project, by path from its root with slashes.
type house struct {
	set     *token.FileSet
	code    []source
	lua     map[string]string
	folders map[string]int // number of files in it and below
}

// source is one Go file.
type source struct {
	path string
	file *ast.File
	text string
}

func (s source) dir() string  { return path.Dir(s.path) }
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") || s.top() == "tests" }

// place is the path without the folder internal/, which says nothing about who may import what.
func (s source) place() string { return strings.TrimPrefix(s.path, "internal/") }

// top is the first folder: "redisdb" for internal/redisdb/redistest/cluster.go.
func (s source) top() string {
	first, _, _ := strings.Cut(s.place(), "/")
	return first
}

// imports lists what the file imports; the project's own packages start with "./".
func (s source) imports() []string {
	var list []string
	for _, i := range s.file.Imports {
		name := strings.Trim(i.Path.Value, `"`)
		if own, ok := strings.CutPrefix(name, module+"/"); ok {
			name = "./" + strings.TrimPrefix(own, "internal/")
		}
		list = append(list, name)
	}
	return list
}

func (h *house) add(name, text string) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		h.folders[dir]++
	}
	switch path.Ext(name) {
	case ".go":
		file, err := parser.ParseFile(h.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		h.code = append(h.code, source{name, file, text})
	case ".lua":
		h.lua[name] = text
	}
	return nil
}

func newHouse() *house {
	return &house{set: token.NewFileSet(), lua: map[string]string{}, folders: map[string]int{}}
}

// pretend makes a house of made-up files.
func pretend(t *testing.T, files map[string]string) *house {
	t.Helper()
	h := newHouse()
	for name, text := range files {
		if err := h.add(name, text); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// root is the folder with go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// theHouse reads the project.
func theHouse(t *testing.T) *house {
	t.Helper()
	base, h := root(t), newHouse()
	err := filepath.WalkDir(base, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(base, file)
		name = filepath.ToSlash(name)
		switch {
		case entry.IsDir() && (name == ".git" || entry.Name() == "node_modules" || name == "bin"):
			return filepath.SkipDir
		case entry.IsDir():
			if _, known := h.folders[name]; !known && name != "." {
				h.folders[name] = 0
			}
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return h.add(name, string(text))
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// at names a place in a file.
func (h *house) at(pos token.Pos) string {
	p := h.set.Position(pos)
	return p.String()
}

// rule is one rule, with sources that break it: the test of the rule itself.
type rule struct {
	name   string
	ask    func(*house) []string
	breaks map[string]map[string]string // why it must complain → files
}

func TestTheHouseKeepsItsRules(t *testing.T) {
	real := theHouse(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, complaint := range r.ask(real) {
				t.Error(complaint)
			}
		})
	}
}

func TestEveryRuleCanFail(t *testing.T) {
	for _, r := range rules {
		if len(r.breaks) == 0 {
			t.Errorf("nothing shows that this rule can fail: %s", r.name)
		}
		for why, files := range r.breaks {
			t.Run(r.name+"/"+why, func(t *testing.T) {
				if len(r.ask(pretend(t, files))) == 0 {
					t.Error("the rule does not complain")
				}
			})
		}
	}
}

var rules = slices.Concat(codeRules, scriptRules)
