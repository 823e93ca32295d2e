package archtest

import (
	"flag"
	"fmt"
	"go/doc"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/tests/testkit"
)

var update = flag.Bool("update", false, "write the generated parts of the documents")

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
	checkPart(t, drawingFile, drawingStart, drawingEnd, drawImports(readProject(t)))
}

const (
	packagesFile  = "README.md"
	packagesStart = "<!-- packages: generated from the package comments by `make generate`; do not edit -->\n"
	packagesEnd   = "<!-- end of packages -->\n"
)

func TestTableOfPackagesIsFresh(t *testing.T) {
	checkPart(t, packagesFile, packagesStart, packagesEnd, tablePackages(readProject(t)))
}

// tablePackages returns the packages with the first sentences of their comments, as Markdown. Tests
// and what only tests import are left out.
func tablePackages(p *project) string {
	sentences := map[string]string{}
	for _, s := range p.code {
		if s.isTest() || s.file.Doc == nil {
			continue
		}
		sentence := new(doc.Package).Synopsis(s.file.Doc.Text())
		if words := strings.SplitN(sentence, " ", 3); len(words) == 3 { // "Package rooms runs …"
			sentences[s.dir()] = words[2]
		}
	}
	var b strings.Builder
	b.WriteString("| package | what it does |\n|---|---|\n")
	for _, dir := range slices.Sorted(maps.Keys(sentences)) {
		if !strings.HasSuffix(dir, "test") {
			fmt.Fprintf(&b, "| `%s` | %s |\n", dir, strings.TrimSuffix(sentences[dir], "."))
		}
	}
	return b.String()
}

// checkPart compares the part of a file between two lines with what it must be, or writes it there.
func checkPart(t *testing.T, file, start, end, want string) {
	t.Helper()
	name := filepath.Join(root(t), file)
	text := testkit.Must(os.ReadFile(name))(t)
	before, rest, found := strings.Cut(string(text), start)
	have, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place between %q and %q", file, start, end)
	}
	want = "\n" + want + "\n"
	if have == want {
		return
	}
	if !*update {
		t.Fatalf("the part of %s after %q is stale; run `make generate`", file, start)
	}
	testkit.Check(t, os.WriteFile(name, []byte(before+start+want+end+after), 0o644))
}
