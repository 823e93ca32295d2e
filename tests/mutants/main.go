// Command mutants breaks the code that moves money, one line at a time, and requires that a test
// notices each defect. It changes no file: test binaries load broken scripts from a copy, and are
// compiled with a broken copy of a Go file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// mutant is one defect of a script or of a Go file.
type mutant struct {
	defect      string // what it does wrong
	source      string // a file in scripts, without ".lua", or the path of a Go file
	find        string // what stands there exactly once
	replacement string
	killer      killer
}

// killer is the test that must notice a mutant.
type killer struct {
	pkg string // the folder, "./rooms"
	run string // as go test -run
}

// brokenText returns the text of the source with the defect.
func (m mutant) brokenText(text string) (string, error) {
	if n := strings.Count(text, m.find); n != 1 {
		return "", fmt.Errorf("%s has %q %d times; a mutant needs a text that is there once", m.path(), m.find, n)
	}
	return strings.Replace(text, m.find, m.replacement, 1), nil
}

func (m mutant) isGo() bool { return strings.HasSuffix(m.source, ".go") }

// path returns the path of the source in the repository.
func (m mutant) path() string {
	if m.isGo() {
		return filepath.FromSlash(m.source)
	}
	return filepath.Join("scripts", m.source+".lua")
}

const timeLimit = "2m" // of the tests of one mutant

func main() {
	only := flag.String("only", "", "a part of the defects to make, or how their sources begin; all without it")
	flag.Parse()
	if err := run(context.Background(), *only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string) error {
	dir, err := os.MkdirTemp("", "parlor-mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r := runner{dir: dir, binaries: map[string]string{}}
	if err := os.CopyFS(r.scripts(), os.DirFS("scripts")); err != nil {
		return err
	}
	sound := map[killer]bool{}
	killed, survivors := 0, []string{}
	for _, m := range slices.Concat(mutants, goMutants) {
		if !strings.Contains(m.defect, only) && !strings.HasPrefix(m.source, only) {
			continue
		}
		if !sound[m.killer] {
			if failed, out, err := r.test(ctx, m.killer); err != nil || failed {
				return fmt.Errorf("%s %s fails without a defect: %w\n%s", m.killer.pkg, m.killer.run, err, out)
			}
			sound[m.killer] = true
		}
		began := time.Now()
		noticed, out, err := r.testBroken(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", m.defect, err, out)
		}
		verdict := "killed"
		if noticed {
			killed++
		} else {
			verdict = "SURVIVED"
			survivors = append(survivors, m.defect)
		}
		fmt.Printf("%-9s %6.1fs  %-16s %s\n", verdict, time.Since(began).Seconds(), m.source, m.defect)
	}
	fmt.Printf("proof: mutants: %d of %d killed\n", killed, killed+len(survivors))
	if len(survivors) > 0 {
		return errors.New("survivors:\n  " + strings.Join(survivors, "\n  "))
	}
	return nil
}

// runner runs tests on a copy of the scripts.
type runner struct {
	dir      string
	binaries map[string]string // test binaries by package
}

func (r runner) scripts() string { return filepath.Join(r.dir, "scripts") }

// testBroken runs the tests of a mutant with its defect.
func (r runner) testBroken(ctx context.Context, m mutant) (noticed bool, output string, err error) {
	text, err := os.ReadFile(m.path())
	if err != nil {
		return false, "", err
	}
	broken, err := m.brokenText(string(text))
	if err != nil {
		return false, "", err
	}
	if m.isGo() {
		return r.testBrokenGo(ctx, m, broken)
	}
	copied := filepath.Join(r.dir, m.path())
	if err := os.WriteFile(copied, []byte(broken), 0o600); err != nil {
		return false, "", err
	}
	noticed, output, err = r.test(ctx, m.killer)
	return noticed, output, errors.Join(err, os.WriteFile(copied, text, 0o600))
}

// testBrokenGo compiles the tests of a mutant with the broken text of a Go file, and runs them.
// Only what depends on the file is compiled anew.
func (r runner) testBrokenGo(ctx context.Context, m mutant, broken string) (noticed bool, output string, err error) {
	original, err := filepath.Abs(m.path())
	if err != nil {
		return false, "", err
	}
	file, list := filepath.Join(r.dir, "broken.go"), filepath.Join(r.dir, "overlay.json")
	overlay, err := wire.Marshal(map[string]map[string]string{"Replace": {original: file}})
	if err != nil {
		return false, "", err
	}
	if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
		return false, "", err
	}
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return false, "", err
	}
	binary := filepath.Join(r.dir, "broken.test")
	if output, err := compileTests(ctx, m.killer.pkg, binary, "-overlay", list); err != nil {
		return false, output, err
	}
	return r.runTests(ctx, binary, m.killer)
}

// test runs the tests of a killer and reports whether one failed.
func (r runner) test(ctx context.Context, k killer) (failed bool, output string, err error) {
	binary, ok := r.binaries[k.pkg]
	if !ok {
		binary = filepath.Join(r.dir, filepath.Base(k.pkg)+".test")
		if output, err := compileTests(ctx, k.pkg, binary); err != nil {
			return false, output, err
		}
		r.binaries[k.pkg] = binary
	}
	return r.runTests(ctx, binary, k)
}

// compileTests compiles the tests of a package.
func compileTests(ctx context.Context, pkg, binary string, flags ...string) (output string, err error) {
	args := slices.Concat([]string{"test", "-c", "-o", binary}, flags, []string{pkg})
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	return string(out), err
}

// runTests runs the tests of a killer and reports whether one failed. A defect that hangs is
// noticed.
func (r runner) runTests(ctx context.Context, binary string, k killer) (failed bool, output string, err error) {
	command := exec.CommandContext(ctx, binary, "-test.run", k.run, "-test.timeout", timeLimit, "-test.failfast")
	command.Dir = k.pkg
	command.Env = append(os.Environ(), redistest.ScriptsEnv+"="+r.scripts())
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case strings.Contains(string(out), "no tests to run"):
		return false, string(out), errors.New("there is no such test")
	case strings.Contains(string(out), redistest.ScriptsEnv):
		return false, string(out), errors.New("the script does not load")
	case errors.As(err, &exit):
		return true, string(out), nil
	default:
		return false, string(out), err
	}
}
