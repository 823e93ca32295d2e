package archtest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/tests/testkit"
)

// TestTheModuleCanBeInstalled keeps `go install …/cmd/parlor@v1.0.0` working: that refuses a module
// which replaces or excludes another, and has no file that is not in git.
func TestTheModuleCanBeInstalled(t *testing.T) {
	text := testkit.Must(os.ReadFile("../../go.mod"))(t)
	if line := regexp.MustCompile(`(?m)^(replace|exclude)\b.*`).Find(text); line != nil {
		t.Errorf("go.mod has %q", line)
	}
	const embedded = `{{$d := .Dir}}{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`
	list := exec.Command("go", "list", "-deps", "-f", embedded, "./cmd/parlor")
	list.Dir = root(t)
	out := testkit.Must(list.Output())(t)
	tracked := exec.Command("git", "ls-files")
	tracked.Dir = root(t)
	files := testkit.Must(tracked.Output())(t)
	isTracked, found := map[string]bool{}, 0
	for line := range strings.Lines(string(files)) {
		isTracked[strings.TrimSpace(line)] = true
	}
	for line := range strings.Lines(string(out)) {
		name, isOurs := strings.CutPrefix(strings.TrimSpace(line), root(t)+"/")
		if !isOurs {
			continue
		}
		found++
		if !isTracked[name] {
			t.Errorf("%s is embedded and not in git", name)
		}
	}
	if found == 0 {
		t.Error("nothing is embedded")
	}
}

// TestLibrariesHaveTheirFixes keeps go.mod from going back behind releases that docs/traps.md
// needs.
func TestLibrariesHaveTheirFixes(t *testing.T) {
	text := testkit.Must(os.ReadFile("../../go.mod"))(t)
	for library, oldest := range map[string][3]int{
		"github.com/redis/go-redis/v9": {9, 22, 0}, // messages lost, Receive that hangs, shards of the wrong server
		"github.com/olahol/melody":     {1, 4, 0},  // a deadline for each write
		"github.com/gorilla/websocket": {1, 5, 3},
	} {
		m := regexp.MustCompile(regexp.QuoteMeta(library) + ` v(\d+\.\d+\.\d+)\b`).FindSubmatch(text)
		if m == nil {
			t.Errorf("go.mod has no %s", library)
			continue
		}
		var got [3]int
		testkit.Must(fmt.Sscanf(string(m[1]), "%d.%d.%d", &got[0], &got[1], &got[2]))(t)
		for i := range got {
			if got[i] != oldest[i] {
				if got[i] < oldest[i] {
					t.Errorf("%s %v is older than %v", library, got, oldest)
				}
				break
			}
		}
	}
}
