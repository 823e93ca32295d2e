package nodetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/tests/testkit"
)

// Release is an older release of Parlor.
type Release struct {
	Commit  string
	Version string // "v0.9.0"
	Program string // its path
	Sources string // the folder with its sources, which nobody may change
}

// PreviousRelease builds parlor as it was in the release before. The file tests/versions/previous
// names the commit. It fails the test where the repository lacks that commit, and skips it in a
// shallow clone and in sources without git, which lack all releases.
func PreviousRelease(t testing.TB) Release {
	t.Helper()
	root := run(t, nil, ".", "go", "list", "-m", "-f", "{{.Dir}}")
	var r Release
	text := testkit.Must(os.ReadFile(filepath.Join(root, "tests", "versions", "previous")))(t)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && !strings.HasPrefix(line, "#") {
			r.Commit, r.Version = fields[0], fields[1]
		}
	}
	if err := exec.Command("git", "-C", root, "cat-file", "-e", r.Commit+"^{commit}").Run(); err != nil {
		say := t.Fatalf
		if !hasHistory(root) {
			say = t.Skipf
		}
		say("there is no commit %s, which tests/versions/previous names as the release %s: "+
			"get it by `git fetch --unshallow` or `git fetch origin %s`", r.Commit, r.Version, r.Commit)
	}
	r.Sources = unpack(t, root, r.Commit)
	r.Program = filepath.Join(t.TempDir(), "parlor-"+r.Version)
	run(t, nil, r.Sources, "go", "build", "-buildvcs=false", "-o", r.Program, "./cmd/parlor")
	return r
}

// hasHistory reports whether a folder is in a clone that is not shallow.
func hasHistory(folder string) bool {
	out, err := exec.Command("git", "-C", folder, "rev-parse", "--is-shallow-repository").Output()
	return err == nil && strings.TrimSpace(string(out)) == "false"
}

// unpack returns the folder with the sources of a commit. It is the same for every test that asks
// for it, so that the build cache of Go has what was compiled there.
func unpack(t testing.TB, root, commit string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	parent := filepath.Join(cache, "parlor-releases")
	folder := filepath.Join(parent, commit)
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	testkit.Check(t, os.MkdirAll(parent, 0o755))
	partial := testkit.Must(os.MkdirTemp(parent, "partial-"))(t)
	defer func() { _ = os.RemoveAll(partial) }()
	archive := run(t, nil, root, "git", "archive", "--format=tar", commit)
	run(t, []byte(archive), partial, "tar", "-x")
	// Another test may have been faster.
	if err := os.Rename(partial, folder); err != nil {
		if _, statErr := os.Stat(folder); statErr != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// NextRelease builds this release as if its layouts of the store were others, and returns the path.
func NextRelease(t testing.TB, oldestLayout, newestLayout int) string {
	t.Helper()
	const name = "github.com/parlor-games/parlor/internal/store/redisdb."
	program := filepath.Join(t.TempDir(), "parlor-next")
	run(t, nil, ".", "go", "build", "-buildvcs=false", "-o", program,
		"-ldflags", fmt.Sprintf("-X %soldestLayout=%d -X %snewestLayout=%d", name, oldestLayout, name, newestLayout),
		"github.com/parlor-games/parlor/cmd/parlor")
	return program
}

// run runs a command in a folder and returns what it printed, without the line end. It fails the
// test when the command fails.
func run(t testing.TB, input []byte, dir, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	var out, errors bytes.Buffer
	c.Dir, c.Stdin, c.Stdout, c.Stderr = dir, bytes.NewReader(input), &out, &errors
	if err := c.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, errors.String())
	}
	return strings.TrimSuffix(out.String(), "\n")
}
