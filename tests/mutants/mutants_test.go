package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/scripts"
	"github.com/yuin/gopher-lua/parse"
)

// Every mutant can be made: its text is in the script, once, and without it the script is still
// Lua. Whether a test notices the defect is for `make mutants`.
func TestEveryMutantFitsItsScript(t *testing.T) {
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(filepath.Join("..", "..", "scripts"))); err != nil {
		t.Fatal(err)
	}
	defects := map[string]bool{}
	for _, m := range mutants {
		if defects[m.defect] {
			t.Errorf("%q is there twice", m.defect)
		}
		defects[m.defect] = true
		path := filepath.Join(copied, m.script+".lua")
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		broken, err := m.brokenSource(string(source))
		if err != nil {
			t.Errorf("%s: %v", m.defect, err)
			continue
		}
		if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, s := range scripts.All() {
			library, isLibrary := strings.CutPrefix(m.script, scripts.LibraryPrefix)
			if name != m.script && (!isLibrary || !strings.Contains(s.Source, "-- "+m.script+":")) {
				continue
			}
			loaded, err := scripts.Load(os.DirFS(copied), name)
			if err == nil {
				_, err = parse.Parse(strings.NewReader(loaded.EmbeddedSource), name)
			}
			if err != nil {
				t.Errorf("%s: %s with the broken %s: %v", m.defect, name, library, err)
			}
		}
		if err := os.WriteFile(path, source, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(mutants) < 30 {
		t.Errorf("there are %d mutants", len(mutants))
	}
}
