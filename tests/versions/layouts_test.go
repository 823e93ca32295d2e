package versions

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

var update = flag.Bool("update", false, "write the golden file of the newest layout")

// TestALayoutOfTheStoreIsNotChanged compares the keys and the packed texts with the copy for the
// newest layout of the store. What two builds with one number write, both must read: so a line that
// is there may not change, apart from a value that older texts lack. Keys may be added where a
// build without them neither misreads nor loses anything; -update takes those and nothing else.
func TestALayoutOfTheStoreIsNotChanged(t *testing.T) {
	golden := fmt.Sprintf("layout-%d.txt", redisdb.NewestLayout())
	lines := describeSchema(t)
	text, stored := readSchema(t, golden)
	problems := append(compareSchemas(redisdb.NewestLayout(), stored, lines), findUnwritten(lines)...)
	for _, p := range problems {
		t.Errorf("%s. There are stores with layout %d: make it a new layout (CONTRIBUTING.md, \"The layout of the "+
			"store\"). If only the source is another, and what is stored is not, change the line of %s by hand",
			p, redisdb.NewestLayout(), golden)
	}
	// Builds of two layouts that follow each other share a store, too: packed texts only grow.
	_, before := readSchema(t, fmt.Sprintf("layout-%d.txt", redisdb.NewestLayout()-1))
	maps.DeleteFunc(before, func(name, _ string) bool { return !strings.HasPrefix(name, "packed ") })
	for _, p := range compareSchemas(redisdb.NewestLayout()-1, before, lines) {
		t.Errorf("%s: nodes of the release before could not read it", p)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&b, "%s: %s\n", name, lines[name])
	}
	switch {
	case b.String() == text || len(problems) > 0:
	case *update:
		testkit.Check(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	default:
		t.Errorf("%s is not up to date: does a build without the new keys and values neither misread nor lose anything? "+
			"Then run go test ./tests/versions -run TestALayout -update, else make a new layout", golden)
	}
}

// readSchema returns the text of a golden file and its lines by their names; none for a file that
// is not there yet.
func readSchema(t *testing.T, golden string) (text string, lines map[string]string) {
	t.Helper()
	data, err := os.ReadFile(golden)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	lines = map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		lines[name] = rest
	}
	return string(data), lines
}

// compareSchemas returns which lines of the schema of a layout are gone, or changed in a way that a
// build which knows the stored ones does not read, or would lose.
func compareSchemas(layout int, stored, now map[string]string) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		before, after := stored[name], now[name]
		switch {
		case before == after:
		case after == "":
			problems = append(problems, name+" is gone")
		case strings.HasPrefix(name, "packed ") && isLonger(layout, before, after):
		default:
			problems = append(problems, fmt.Sprintf("%s was %q and is %q", name, before, after))
		}
	}
	return problems
}

// isLonger reports whether a list of values is that of a layout with values that older texts lack,
// and that a build without them cannot lose: such a build packs texts while the store has the
// layout.
func isLonger(layout int, before, after string) bool {
	more, ok := strings.CutPrefix(after, before+" ")
	if !ok || strings.HasSuffix(before, "*") {
		return false
	}
	for _, name := range strings.Fields(more) {
		_, since, isLater := strings.Cut(name, "@")
		number, err := strconv.Atoi(since)
		if !strings.HasSuffix(name, "?") && (!isLater || err != nil || number <= layout) {
			return false
		}
	}
	return true
}

// findUnwritten returns which values no store has, because they are written since a layout that
// this build does not know.
func findUnwritten(lines map[string]string) (problems []string) {
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		for _, name := range strings.Fields(lines[line]) {
			_, since, _ := strings.Cut(name, "@")
			if number, err := strconv.Atoi(since); strings.HasPrefix(line, "packed ") && err == nil &&
				number > redisdb.NewestLayout() {
				problems = append(problems, fmt.Sprintf("%s: %s is never written", line, name))
			}
		}
	}
	return problems
}

func TestTheComparisonOfSchemasFindsWhatAnOlderBuildMisreads(t *testing.T) {
	stored := map[string]string{"packed seat": "state stake", "packed note": "at text*", "key Room": "return 1"}
	for _, tt := range []struct {
		name, line string
		problems   int
	}{
		{"packed seat", "state stake", 0},
		{"packed seat", "state stake bonus?", 0},
		{"packed seat", "state stake bonus@4", 0},
		{"packed seat", "state stake bonus@3", 1}, // a build without it would lose it
		{"packed seat", "state stake bonus? team@3", 1},
		{"packed seat", "state stake bonus", 1},
		{"packed seat", "state bonus? stake", 1},
		{"packed seat", "state", 1},
		{"packed seat", "", 1},
		{"packed note", "at text* more?", 1},
		{"key Room", "return 2", 1},
		{"key Seat", "return 2", 0},
	} {
		now := maps.Clone(stored)
		now[tt.name] = tt.line
		if problems := compareSchemas(3, stored, now); len(problems) != tt.problems {
			t.Errorf("%s: %q has the problems %q", tt.name, tt.line, problems)
		}
	}
}

// describeSchema returns a line for each key, each constant of package keys and each packed text.
func describeSchema(t *testing.T) map[string]string {
	t.Helper()
	lines := map[string]string{}
	for name, l := range scripts.Layouts() {
		values := make([]string, len(l.Names))
		for i, value := range l.Names {
			switch {
			case l.Since[i] != 0:
				value += fmt.Sprintf("@%d", l.Since[i])
			case i >= l.Required:
				value += "?"
			case l.FreeText && i == len(values)-1:
				value += "*"
			}
			values[i] = value
		}
		lines["packed "+name] = strings.Join(values, " ")
	}
	files, err := filepath.Glob("../../internal/store/keys/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of package keys: %v", err)
	}
	set := token.NewFileSet()
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "layout") { // of an older store
			continue
		}
		file := testkit.Must(parser.ParseFile(set, path, nil, 0))(t) // without comments
		for _, d := range file.Decls {
			describeDeclaration(t, lines, set, d)
		}
	}
	return lines
}

func describeDeclaration(t *testing.T, lines map[string]string, set *token.FileSet, d ast.Decl) {
	t.Helper()
	text := func(node any) string {
		var b bytes.Buffer
		testkit.Check(t, printer.Fprint(&b, set, node))
		return strings.Join(strings.Fields(b.String()), " ")
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = text(d.Recv.List[0].Type) + "." + name
		}
		lines["key "+name] = text(d.Type) + " " + text(d.Body)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.CONST {
				for i, name := range v.Names {
					if i < len(v.Values) {
						lines["constant "+name.Name] = text(v.Values[i])
					}
				}
			}
		}
	}
}
