package archtest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/ops/config"
)

var update = flag.Bool("update", false, "write the drawing of the imports")

func TestGeneratedFilesAreFresh(t *testing.T) {
	for name, want := range map[string]string{
		"docs/settings.md":    config.ReferenceMarkdown(),
		"deploy/.env.example": config.ExampleEnv(),
	} {
		have, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Errorf("%v; run `make generate`", err)
		} else if string(have) != want {
			t.Errorf("%s is stale; run `make generate`", name)
		}
	}
}

func TestDrawingOfImportsIsFresh(t *testing.T) {
	name := filepath.Join(root(t), drawingFile)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), drawingStart)
	have, after, closed := strings.Cut(rest, drawingEnd)
	if !found || !closed {
		t.Fatalf("%s has no place for the drawing, between %q and %q", drawingFile, drawingStart, drawingEnd)
	}
	want := "\n" + drawImports(readProject(t)) + "\n"
	if have == want {
		return
	}
	if !*update {
		t.Fatalf("the drawing of the imports in %s is stale; run `make generate`", drawingFile)
	}
	if err := os.WriteFile(name, []byte(before+drawingStart+want+drawingEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
