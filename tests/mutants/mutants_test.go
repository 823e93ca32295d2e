package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/yuin/gopher-lua/parse"
)

// Every mutant can be made: its text is in the script, once, and without it the script is still
// Lua. Whether a test notices the defect is for `make mutants`.
func TestEveryMutantFitsItsScript(t *testing.T) {
	copied := t.TempDir()
	testkit.Check(t, os.CopyFS(copied, os.DirFS(filepath.Join("..", "..", "scripts"))))
	for _, m := range mutants {
		path := filepath.Join(copied, m.source+".lua")
		source := testkit.Must(os.ReadFile(path))(t)
		broken, err := m.brokenText(string(source))
		if err != nil {
			t.Errorf("%s: %v", m.defect, err)
			continue
		}
		testkit.Check(t, os.WriteFile(path, []byte(broken), 0o600))
		for name, s := range scripts.All() {
			library, isLibrary := strings.CutPrefix(m.source, scripts.LibraryPrefix)
			if name != m.source && (!isLibrary || !strings.Contains(s.Source, "-- "+m.source+":")) {
				continue
			}
			loaded, err := scripts.Load(os.DirFS(copied), name)
			if err == nil {
				_, err = parse.Parse(strings.NewReader(loaded.EmbeddedSource), name)
			}
			testkit.Report(t, err, "%s: %s with the broken %s", m.defect, name, library)
		}
		testkit.Check(t, os.WriteFile(path, source, 0o600))
	}
	if len(mutants) < 30 {
		t.Errorf("there are %d mutants", len(mutants))
	}
}

// Every mutant of Go code can be made: its text is in the file, once, and what is broken can be
// parsed. Whether it compiles is for `make mutants`, which says so.
func TestEveryMutantFitsItsGoFile(t *testing.T) {
	for _, m := range goMutants {
		if !m.isGo() {
			t.Errorf("%s: %s is no Go file", m.defect, m.source)
			continue
		}
		text := testkit.Must(os.ReadFile(filepath.Join("..", "..", m.path())))(t)
		broken, err := m.brokenText(string(text))
		if err == nil {
			_, err = parser.ParseFile(token.NewFileSet(), m.source, broken, parser.SkipObjectResolution)
		}
		testkit.Report(t, err, "%s", m.defect)
	}
}

var testPattern = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// Every mutant has a defect of its own, and tests that must notice it.
func TestEveryMutantHasItsTests(t *testing.T) {
	defects, tests := map[string]bool{}, map[string][]string{}
	for _, m := range slices.Concat(mutants, goMutants) {
		if defects[m.defect] {
			t.Errorf("%q is there twice", m.defect)
		}
		defects[m.defect] = true
		pkg := m.killer.pkg
		if tests[pkg] == nil {
			files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pkg), "*_test.go"))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s has no tests: %v", pkg, err)
			}
			for _, file := range files {
				text := testkit.Must(os.ReadFile(file))(t)
				for _, found := range testPattern.FindAllStringSubmatch(string(text), -1) {
					tests[pkg] = append(tests[pkg], found[1])
				}
			}
		}
		for one := range strings.SplitSeq(m.killer.run, "|") {
			if !slices.ContainsFunc(tests[pkg], regexp.MustCompile(one).MatchString) {
				t.Errorf("%s: there is no test %s in %s", m.defect, one, pkg)
			}
		}
	}
}
