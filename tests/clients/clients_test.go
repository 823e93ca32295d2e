// Package clients makes a Go client of openapi.yaml with oapi-codegen, compiles it and plays with
// it. web/test/clients.test.ts does the same with generators for TypeScript.
//
// It is a module of its own, so that the generator is no dependency of Parlor.
package clients

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/oapi-codegen/runtime" // of the generated client
)

const contract = "../../handlers/openapi.yaml"

func TestAClientOfOAPICodegenPlays(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "play")
	for _, name := range []string{"go.mod", "go.sum", "testdata/play.go"} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, filepath.Base(name)), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "api"), 0o700); err != nil {
		t.Fatal(err)
	}
	client := filepath.Join(folder, "api", "api.go")
	run(t, ".", "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", client, contract)
	text, err := os.ReadFile(client)
	if err != nil {
		t.Fatal(err)
	}
	api, err := os.ReadFile(contract)
	if err != nil {
		t.Fatal(err)
	}
	lines, operations := bytes.Count(text, []byte("\n")), bytes.Count(api, []byte("operationId:"))
	if lines > 600*operations { // 580 of each on average
		t.Errorf("the client has %d lines for %d operations: does a response have a schema of its own?", lines, operations)
	}
	if bytes.Contains(text, []byte("float32")) {
		t.Error("the client has float32: a number of openapi.yaml is without `format: double`")
	}
	run(t, folder, "go", "build", "-o", program, ".")
	play := exec.CommandContext(t.Context(), program)
	play.Env = append(os.Environ(), startNode(t)...)
	if out, err := play.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func run(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = folder
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(c.Args, " "), err, out)
	}
}

var exported = regexp.MustCompile(`\b(URL|[A-Z]+_TOKEN|[A-Z]+_KEY)=(\S+)`)

// startNode starts a node in developer mode and returns the variables that it prints.
func startNode(t *testing.T) (variables []string) {
	t.Helper()
	binary := os.Getenv("PARLOR_BIN")
	if binary == "" {
		binary = filepath.Join(t.TempDir(), "parlor")
		run(t, "../..", "go", "build", "-o", binary, "./cmd/parlor")
	}
	node := exec.CommandContext(t.Context(), binary, "dev", "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0")
	node.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := node.StdoutPipe()
	if err == nil {
		err = node.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Wait() }) // the test's context has ended by then
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		for _, m := range exported.FindAllStringSubmatch(lines.Text(), -1) {
			variables = append(variables, m[1]+"="+m[2])
		}
		if strings.Contains(lines.Text(), "/admin/audit") {
			return variables
		}
	}
	t.Fatalf("the node ended: %v", lines.Err())
	return nil
}
