// Command mutants breaks the scripts that move money, one line at a time, and requires that a test
// notices each defect. It changes no file: test binaries load the broken scripts from a copy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

// mutant is one defect of a script.
type mutant struct {
	defect      string // what it does wrong
	script      string // file in scripts, without ".lua"
	find        string // what stands there exactly once
	replacement string
	killer      killer
}

// killer is the test that must notice a mutant.
type killer struct {
	pkg string // the folder, "./rooms"
	run string // as go test -run
}

// brokenSource returns the script with its defect.
func (m mutant) brokenSource(source string) (string, error) {
	if n := strings.Count(source, m.find); n != 1 {
		return "", fmt.Errorf("%s.lua has %q %d times; a mutant needs a text that is there once", m.script, m.find, n)
	}
	return strings.Replace(source, m.find, m.replacement, 1), nil
}

func (m mutant) path() string { return filepath.Join("scripts", m.script+".lua") }

const timeLimit = "2m" // of the tests of one mutant

func main() {
	only := flag.String("only", "", "a part of the defects to make, or the script that has them; all without it")
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
	for _, m := range mutants {
		if !strings.Contains(m.defect, only) && m.script != only {
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
		fmt.Printf("%-9s %6.1fs  %-16s %s\n", verdict, time.Since(began).Seconds(), m.script, m.defect)
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

// testBroken runs the tests of a mutant while the copy has its defect.
func (r runner) testBroken(ctx context.Context, m mutant) (noticed bool, output string, err error) {
	source, err := os.ReadFile(m.path())
	if err != nil {
		return false, "", err
	}
	broken, err := m.brokenSource(string(source))
	if err != nil {
		return false, "", err
	}
	copied := filepath.Join(r.dir, m.path())
	if err := os.WriteFile(copied, []byte(broken), 0o600); err != nil {
		return false, "", err
	}
	noticed, output, err = r.test(ctx, m.killer)
	return noticed, output, errors.Join(err, os.WriteFile(copied, source, 0o600))
}

// test runs the tests of a killer and reports whether one failed. A defect that hangs is noticed.
func (r runner) test(ctx context.Context, k killer) (failed bool, output string, err error) {
	binary, ok := r.binaries[k.pkg]
	if !ok {
		binary = filepath.Join(r.dir, filepath.Base(k.pkg)+".test")
		if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, k.pkg).CombinedOutput(); err != nil {
			return false, string(out), err
		}
		r.binaries[k.pkg] = binary
	}
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
