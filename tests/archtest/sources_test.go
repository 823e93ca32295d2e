// Package archtest checks the rules of the project that no compiler checks: what CONTRIBUTING.md
// and the package comments promise. A rule is a function from the sources to violations, with
// samples that show that it can fail.
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

	"github.com/parlor-games/parlor/tests/testkit"
)

const module = "github.com/parlor-games/parlor"

// project is all sources of the repository. Paths start at its root and have slashes.
type project struct {
	set     *token.FileSet
	code    []source
	lua     map[string]string // text by path
	docs    map[string]string // text of Markdown files by path
	files   map[string]bool   // every file
	folders map[string]int    // number of files in the folder and below
}

// source is one Go file.
type source struct {
	path string
	file *ast.File
	text string
}

func (s source) dir() string  { return path.Dir(s.path) }
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") || s.top() == "tests" }

// folderOf returns the folder of the house that a path is in: "internal/money", "rooms", "cmd".
func folderOf(name string) string {
	first, rest, _ := strings.Cut(name, "/")
	if second, _, _ := strings.Cut(rest, "/"); first == "internal" {
		return first + "/" + second
	}
	return first
}

// groups are the folders whose packages are named without them.
var groups = []string{
	"internal/base/", "internal/store/", "internal/players/", "internal/money/", "internal/ops/", "competition/",
}

// withoutGroup returns a path from the name of its package on.
func withoutGroup(name string) string {
	for _, group := range groups {
		if rest, ok := strings.CutPrefix(name, group); ok {
			return rest
		}
	}
	return name
}

// place returns the path from the name of the package on.
func (s source) place() string { return withoutGroup(s.path) }

// top returns the first folder: "redisdb" for internal/store/redisdb/redistest/cluster.go.
func (s source) top() string {
	first, _, _ := strings.Cut(s.place(), "/")
	return first
}

// ownImports lists the packages of the project that the file imports, as paths from its root.
func (s source) ownImports() []string {
	var list []string
	for _, i := range s.file.Imports {
		if own, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/"); ok {
			list = append(list, own)
		}
	}
	return list
}

// imports lists what the file imports. The project's own packages start with "./".
func (s source) imports() []string {
	var list []string
	for _, i := range s.file.Imports {
		name := strings.Trim(i.Path.Value, `"`)
		if own, ok := strings.CutPrefix(name, module+"/"); ok {
			name = "./" + withoutGroup(own)
		}
		list = append(list, name)
	}
	return list
}

func newProject() *project {
	return &project{
		set: token.NewFileSet(), lua: map[string]string{}, docs: map[string]string{},
		files: map[string]bool{}, folders: map[string]int{},
	}
}

func (p *project) add(name, text string) error {
	p.files[name] = true
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		p.folders[dir]++
	}
	switch path.Ext(name) {
	case ".go":
		file, err := parser.ParseFile(p.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.code = append(p.code, source{name, file, text})
	case ".lua":
		if !strings.HasPrefix(name, "sdk/") { // that of games, not of the store
			p.lua[name] = text
		}
	case ".md":
		p.docs[name] = text
	}
	return nil
}

// position returns "file:line:column".
func (p *project) position(pos token.Pos) string {
	at := p.set.Position(pos)
	return at.String()
}

// sampleProject returns a project of made-up files.
func sampleProject(t *testing.T, files map[string]string) *project {
	t.Helper()
	p := newProject()
	for name, text := range files {
		testkit.Check(t, p.add(name, text))
	}
	return p
}

// root returns the folder with go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir := testkit.Must(filepath.Abs("../.."))(t)
	testkit.Must(os.Stat(filepath.Join(dir, "go.mod")))(t)
	return dir
}

// readProject reads the repository.
func readProject(t *testing.T) *project {
	t.Helper()
	base, p := root(t), newProject()
	testkit.Check(t, filepath.WalkDir(base, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(base, file)
		name = filepath.ToSlash(name)
		switch {
		case entry.IsDir() && (name == ".git" || entry.Name() == "node_modules" || name == "bin"):
			return filepath.SkipDir
		case entry.IsDir():
			if _, known := p.folders[name]; !known && name != "." {
				p.folders[name] = 0
			}
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return p.add(name, string(text))
	}))
	return p
}

// rule is one rule, with samples that break it: the test of the rule itself.
type rule struct {
	name    string
	check   func(*project) (violations []string) // each starts with the path of the file
	samples map[string]map[string]string         // why it must fail → files
}

var rules = slices.Concat(importRules, codeRules, languageRules, documentRules, scriptRules, clockRules)

func TestTheProjectKeepsItsRules(t *testing.T) {
	p := readProject(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, violation := range r.check(p) {
				t.Error(violation)
			}
		})
	}
}

func TestEveryRuleCanFail(t *testing.T) {
	for _, r := range rules {
		if len(r.samples) == 0 {
			t.Errorf("nothing shows that this rule can fail: %s", r.name)
		}
		for why, files := range r.samples {
			t.Run(r.name+"/"+why, func(t *testing.T) {
				if len(r.check(sampleProject(t, files))) == 0 {
					t.Error("the rule finds no violation")
				}
			})
		}
	}
}

// allowed lists what looks like a violation and is none, by the name of the rule.
var allowed = map[string]map[string]map[string]string{
	"tests wait for a condition, never for time": {
		"a polling helper": {"rooms/a_test.go": `package rooms; import "time"; func waitFor() { time.Sleep(1) }`},
		"a deadline": {
			"rooms/a_test.go": `package rooms; import "time"
				func see() { select { case <-c: case <-time.After(1): t.Fatal("never") } }`,
		},
		"no test": {"rooms/a.go": `package rooms; import "time"; func pause() { time.Sleep(1) }`},
		"a fake clock": {
			"rooms/a_test.go": `package rooms; import ("time"; _ "testing/synctest"); func TestIt() { time.Sleep(1) }`,
		},
	},
	"a line of code has at most 120 columns, a line of comment 100": {
		"as long as may be": {
			"rooms/a.go": "package rooms\n\n// " + strings.Repeat("x", 97) + "\nvar x = `" + strings.Repeat("x", 110) + "`",
		},
		"characters count, not bytes": {"rooms/a.go": "package rooms\n\n// " + strings.Repeat("ü", 97)},
		"a comment behind code":       {"rooms/a.go": "package rooms\n\nvar x = 1 // " + strings.Repeat("x", 105)},
		"generated": {
			"rooms/a.go": "// Code generated by hand. DO NOT EDIT.\n\npackage rooms\n\n// " + strings.Repeat("x", 200),
		},
	},
	"a doc comment uses Go's phrases": {
		"in code": {"a/a.go": "package a\n\nfunc f() {\n\t// it answers\n}"},
	},
	"no comment refers to a number that stands elsewhere": {"a hash tag": {"a/a.go": "package a\n\n// {r0} to {r63}"}},
	"what documents name is there": {
		"all of it": {
			"README.md":     "`rooms/a.go: (*Service).Join` `rooms/a.go: Join` `rooms/` `text/plain` [it](rooms/a.go)",
			"rooms/a.go":    "package rooms; type Service struct{ store int }; func (s *Service) Join() {}",
			"scripts/a.lua": "local function emit() end",
			"docs/a.md":     "`scripts/a.lua: emit` [up](../README.md) [out](https://example.com/x)\n```\n`gone/`\n```",
		},
	},
	"imports follow the tables": {
		"a test": {"rooms/a_test.go": `package rooms; import _ "` + module + `/handlers"`},
		"below":  {"rooms/a.go": `package rooms; import _ "` + module + `/internal/money/wallet"`},
		"inside": {
			"internal/money/assets/a.go": `package assets; import _ "` + module + `/internal/money/wallet"`,
		},
	},
}

func TestRulesAllowWhatTheyShould(t *testing.T) {
	for name, samples := range allowed {
		i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
		if i < 0 {
			t.Fatalf("there is no rule %q", name)
		}
		for why, files := range samples {
			if violations := rules[i].check(sampleProject(t, files)); len(violations) > 0 {
				t.Errorf("%s/%s: %v", name, why, violations)
			}
		}
	}
}
