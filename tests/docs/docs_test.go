//go:build linux

// Package docs runs the commands of the documents as their readers would, on a node of its own and
// on free ports.
//
// A block of code in a document is run, compiled or parsed by its language. A comment in the line
// before it says what a reader sees without being told:
//
//	<!-- runs until "text" -->   a server: it is left running, and what it printed is pasted into
//	                             the shell of the blocks below
//	<!-- not run: reason -->     what a test cannot have, such as Docker or a host of the reader's
//
// A drawing has the language text. web/test/snippets.test.ts compiles the scripts of pages.
package docs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
	"go.yaml.in/yaml/v3"
)

func TestMain(m *testing.M) { os.Exit(nodetest.Main(m)) }

const root = "../.."

// documents are the patterns of what is read; sdk/api.md is generated from the types.
var documents = []string{
	"*.md", "docs/*.md", "docs/decisions/*.md", "sdk/README.md", "sdk/examples/README.md",
	"web/src/docs/content/*.md", "web/src/docs/content/*/*.md",
}

// block is one block of code of a document.
type block struct {
	path     string // of the document, from the root
	line     int    // of its first line of code
	language string
	text     string
	until    string // what a server prints once it runs
	notRun   string // why it is not run
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.path, b.line) }

func (b block) isShell() bool { return b.language == "sh" || b.language == "bash" }

var (
	runsUntil = regexp.MustCompile(`^<!-- runs until "(.+)" -->$`)
	notRun    = regexp.MustCompile(`^<!-- not run: (.{10,}) -->$`)
)

// parseBlocks returns the blocks of a document.
func parseBlocks(path, document string) (blocks []block) {
	var open *block
	var before string // the last line that is not empty
	n := 0
	for line := range strings.Lines(document) {
		n++
		line = strings.TrimRight(line, "\n")
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open == nil:
			open = &block{path: path, line: n + 1, language: fence}
			if m := runsUntil.FindStringSubmatch(before); m != nil {
				open.until = m[1]
			}
			if m := notRun.FindStringSubmatch(before); m != nil {
				open.notRun = m[1]
			}
		case isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
		if strings.TrimSpace(line) != "" {
			before = line
		}
	}
	return blocks
}

// readDocuments calls visit with each document.
func readDocuments(t *testing.T, visit func(path, text string)) {
	t.Helper()
	for _, pattern := range documents {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("nothing matches %s: %v", pattern, err)
		}
		for _, name := range names {
			text := testkit.Must(os.ReadFile(name))(t)
			path := testkit.Must(filepath.Rel(root, name))(t)
			visit(filepath.ToSlash(path), string(text))
		}
	}
}

// checkUnrun returns what is wrong with a block that is not a command.
func checkUnrun(b block) error {
	switch b.language {
	case "text", "typescript", "tsx", "html", "xml":
		return nil
	case "go":
		return checkProgram(b)
	case "json":
		var value any
		return wire.Unmarshal([]byte(b.text), &value)
	case "yaml":
		var value any
		return yaml.Unmarshal([]byte(b.text), &value)
	default:
		return fmt.Errorf("no test runs the language %q: give it a known one, or a comment of why it is not run", b.language)
	}
}

// diceProgram is the program in Go of the recipe, which TestTheServerOfTheRecipePlays runs.
const diceProgram = "sdk/go/examples/dice"

// checkProgram returns an error for a program that is not the one that a test runs.
func checkProgram(b block) error {
	text, err := os.ReadFile(filepath.Join(root, diceProgram, "main.go"))
	if err == nil && string(text) != b.text {
		err = fmt.Errorf("it is not %s/main.go", diceProgram)
	}
	return err
}

// TestTheServerOfTheRecipePlays starts the server of a game of dice beside a node, as its reader
// does. Two players roll.
func TestTheServerOfTheRecipePlays(t *testing.T) {
	r := newReader(t, diceProgram)
	program := filepath.Join(r.folder, "dice")
	build := exec.Command("go", "build", "-o", program, "./"+diceProgram)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), documentTimeout)
	defer cancel()
	r.startServer(ctx, block{path: r.path, text: "parlor dev", until: "# Events"})
	c := r.command(ctx, startedRoom+`
export URL SERVER_KEY
`+program+` &
server=$!
roll() { send call $1 "{\"roomId\":\"$ROOM\",\"op\":\"roll\",\"payload\":{}}"; }
until roll $ADA_TOKEN; do sleep 0.1; done
! roll $ADA_TOKEN || exit 1
roll $BOB_TOKEN
curl -s "$URL/api/v1/game-session/get?roomId=$ROOM" -H "Authorization: Bearer $ADA_TOKEN"
curl -s "$URL/api/v1/admin/audit" -H "Authorization: Bearer $ADMIN_KEY"
kill $server
`)
	out, err := c.CombinedOutput()
	for _, want := range []string{`"payload":\d+`, `rolled_already`, `"status":"FINISHED"`, `"balanced":true`} {
		if !regexp.MustCompile(want).Match(out) {
			err = errors.Join(err, fmt.Errorf("nobody sees %s", want))
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestABlockThatNothingRunsIsFound(t *testing.T) {
	const document = "A drawing:\n```\n+--+\n```\nthen\n\n<!-- not run: needs a moon -->\n```go\nx\n```\n" +
		"<!-- runs until \"it is up\" -->\n```sh\nserve\n```\n```json\n{\"a\": }\n```\n```sh\ntrue\n```\n"
	blocks := parseBlocks("a.md", document)
	if len(blocks) != 5 || blocks[0].String() != "a.md:3" || blocks[0].text != "+--+\n" ||
		blocks[1].notRun != "needs a moon" || blocks[2].until != "it is up" || blocks[4].until != "" {
		t.Fatalf("blocks: %+v", blocks)
	}
	for _, b := range []block{blocks[0], blocks[3]} {
		if checkUnrun(b) == nil {
			t.Errorf("%s passes", b)
		}
	}
}

func TestTheCommandsOfTheDocuments(t *testing.T) {
	readDocuments(t, func(path, text string) {
		var commands []block
		for _, b := range parseBlocks(path, text) {
			switch {
			case b.notRun != "":
			case b.isShell():
				commands = append(commands, b)
			default:
				testkit.Report(t, checkUnrun(b), "%s", b)
			}
		}
		if len(commands) > 0 {
			t.Run(path, func(t *testing.T) { newReader(t, path).follow(commands) })
		}
	})
}

// expected lists what a reader sees after the last command of a document.
var expected = map[string][]string{
	"README.md": {
		`"balanced":true`, `"tokenId":"GOLD".*?"volume":102.5,`, `(?m)^parlor tail --url `,
	},
	"web/src/docs/content/first-leaderboard.md": {
		`"rank":1,"place":1,"user":\{"id":1,"username":"ada".*"score":61.75`, `"hidden":true`,
	},
	"web/src/docs/content/first-tournament.md": {
		`"place":1,"user":\{"id":1,"username":"ada".*"payout":10.5,`, `"balanced":true`, `cancel +Cancel a tournament`,
	},
	"web/src/docs/content/recipes/duel.md": {`"status":"FINISHED"`, `"balanced":true`},
	"docs/game-server.md":                  {`"feed":true`},
	"web/src/docs/content/recipes/turn-based.md": {
		`"stateKeys":\{"board\.":"host","moves\.":"owner"\}`, `"status":"FINISHED"`,
	},
	"web/src/docs/content/recipes/consensus.md": {
		`"status":"DISPUTED"`, `"reports":\[\{"userId":1,`, `"status":"FINISHED"`, `"balanced":true`,
	},
}

// preparations are the commands that a reader of a recipe has behind them: a node runs, and two
// players are in a room that has started.
var preparations = map[string]string{
	"docs/game-server.md":                        startedRoom,
	"web/src/docs/content/recipes/duel.md":       startedRoom,
	"web/src/docs/content/recipes/turn-based.md": startedRoom,
	"web/src/docs/content/recipes/consensus.md": strings.Replace(startedRoom, `"autoStart":true`,
		`"autoStart":true,"settlement":"consensus"`, 1),
}

const startedRoom = `
send() {
  curl -s "$URL/api/v1/game-session/$1" -H "Authorization: Bearer $2" -H 'Content-Type: application/json' -d "$3"
}
ROOM=$(send create $ADA_TOKEN '{"entryTokenId":1,"roomEntry":"2.5","maxPlayers":2,"autoStart":true}' |
  sed 's/.*"roomId":"\([^"]*\)".*/\1/')
send join $BOB_TOKEN "{\"roomId\":\"$ROOM\"}"
`

// reader follows a document: each block is pasted into a shell, below what servers have printed.
type reader struct {
	t       *testing.T
	path    string
	pasted  string // commands that a server has printed
	output  bytes.Buffer
	folder  string // of commands that stand in for others, and of what is stored
	storeAt string // address of the store that the document starts
}

// standIns are commands that do less in a test than they do for a reader, and as much as shows that
// they can be typed like this.
var standIns = map[string]string{
	// A request that is refused is an error.
	"curl": `exec "$REAL" --fail-with-body "$@"`,
	// Only a server is made and run. Other targets must exist.
	"make": `if [ -n "${IS_SERVER:-}" ]; then exec "$REAL" "$@"; else exec "$REAL" -n "$@" >/dev/null; fi`,
	"go":   `if [ "$1" = run ]; then exec "$REAL" list "$2" >/dev/null; else exec "$REAL" "$@"; fi`,
	"npm": `case "$1" in ci) ;; run) grep -q "\"$2\":" package.json ;;
*) grep -q "\"$1\":" package.json ;; esac`,
	// Its port is free, and its files are removed.
	"redis-server": `exec "$REAL" "$@" --port "$STORE_PORT" --dir "$STORE_FOLDER"`,
}

func newReader(t *testing.T, path string) *reader {
	t.Helper()
	for _, name := range []string{"bash", "curl"} {
		testkit.Must(exec.LookPath(name))(t, "the documents need %s", name)
	}
	r := &reader{t: t, path: path, folder: t.TempDir(), storeAt: nodetest.FreeAddress(t)}
	for name, text := range standIns {
		real, _ := exec.LookPath(name) // npm may be missing: its stand-in does not need it
		script := "#!/bin/bash\nREAL='" + real + "'\n" + text + "\n"
		testkit.Check(t, os.WriteFile(filepath.Join(r.folder, name), []byte(script), 0o700))
	}
	testkit.Check(t, os.Symlink(nodetest.Binary(t), filepath.Join(r.folder, "parlor")))
	return r
}

const (
	// documentStoreAddress is where documents start their store.
	documentStoreAddress = "127.0.0.1:6379"
	// documentTimeout bounds a document, and building parlor for it.
	documentTimeout = 3 * time.Minute
)

// command returns a shell in which a block is pasted. Every command that fails is named on stderr.
func (r *reader) command(ctx context.Context, text string, env ...string) *exec.Cmd {
	text = strings.ReplaceAll(text, documentStoreAddress, r.storeAt)
	script := "set -uE -o pipefail\n" + r.pasted +
		"trap 'echo \"FAILED: $BASH_COMMAND\" >&2' ERR\n" + text
	c := exec.CommandContext(ctx, "bash", "-c", script)
	c.Dir = filepath.Join(root, filepath.FromSlash(r.workFolder()))
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "PARLOR_") {
			c.Env = append(c.Env, pair)
		}
	}
	_, storePort, _ := net.SplitHostPort(r.storeAt)
	c.Env = append(
		c.Env, "PATH="+r.folder+string(os.PathListSeparator)+os.Getenv("PATH"), "NO_COLOR=1",
		"PARLOR_LISTEN=127.0.0.1:0", "PARLOR_INTERNAL_LISTEN=127.0.0.1:0",
		"STORE_PORT="+storePort, "STORE_FOLDER="+r.folder,
	)
	c.Env = append(c.Env, env...)
	// What a block starts in the background ends with it.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}

// workFolder returns where the document's commands are typed: in its package, else at the root.
func (r *reader) workFolder() string {
	if strings.HasPrefix(r.path, "sdk/") {
		return "sdk"
	}
	return "."
}

func (r *reader) follow(blocks []block) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), documentTimeout)
	defer cancel()
	if preparations[r.path] != "" {
		r.startServer(ctx, block{path: r.path, text: "parlor dev", until: "# Events"})
	}
	for _, b := range blocks {
		if b.until != "" {
			r.startServer(ctx, b)
			continue
		}
		c := r.command(ctx, preparations[r.path]+b.text)
		var failures bytes.Buffer
		c.Stdout, c.Stderr = &r.output, &failures
		if err := c.Run(); err != nil || strings.Contains(failures.String(), "FAILED: ") {
			r.t.Errorf("%s: %v\n%s%s", b, err, failures.String(), r.output.String())
		}
	}
	for _, want := range expected[r.path] {
		if !regexp.MustCompile(want).Match(r.output.Bytes()) {
			r.t.Errorf("%s: nobody sees %s in:\n%s", r.path, want, r.output.String())
		}
	}
	// What a document tells its reader to paste into a third shell.
	for line := range strings.Lines(r.output.String()) {
		if strings.HasPrefix(line, "parlor tail ") {
			r.startServer(ctx, block{path: r.path, text: line, until: `"room.finished"`})
		}
	}
}

// startServer runs a block until it prints a text, and ends it after the test. Its commands are
// pasted into what follows.
func (r *reader) startServer(ctx context.Context, b block) {
	r.t.Helper()
	c := r.command(ctx, b.text, "IS_SERVER=1")
	pipe, writer := io.Pipe()
	var printed, later bytes.Buffer
	c.Stdout, c.Stderr = writer, writer
	testkit.Check(r.t, c.Start(), "%s", b)
	ended, isRead := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait()
		_ = writer.Close()
	}()
	read := sync.OnceFunc(func() {
		go func() {
			defer close(isRead)
			_, _ = io.Copy(&later, pipe)
		}()
	})
	r.t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGTERM)
		read()
		<-ended // at the latest when ctx is done, which kills it
		<-isRead
		if r.t.Failed() {
			r.t.Logf("%s: %s", b, later.String())
		}
	})
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		printed.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "export ") {
			r.pasted += lines.Text() + "\n"
		}
		if strings.Contains(lines.Text(), b.until) {
			read()
			return
		}
	}
	r.t.Fatalf("%s ended before it printed %q:\n%s", b, b.until, printed.String())
}

var (
	namedCommand = regexp.MustCompile("`(?:bin/)?(make|parlor) ([a-z][a-z-]*)( [a-z]+)?[^`]*`")
	makeTarget   = regexp.MustCompile(`(?m)^([a-z-]+):`)
	subcommand   = regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`) // a name, and what the command does
)

// TestTheCommandsNamedInSentencesExist looks at `make …` and `parlor …` between the blocks.
func TestTheCommandsNamedInSentencesExist(t *testing.T) {
	makefile := testkit.Must(os.ReadFile(filepath.Join(root, "Makefile")))(t)
	help := testkit.Must(exec.Command(nodetest.Binary(t), "--help").Output())(t)
	names := map[string][]string{}
	for kind, found := range map[string][][][]byte{
		"make": makeTarget.FindAllSubmatch(makefile, -1), "parlor": subcommand.FindAllSubmatch(help, -1),
	} {
		for _, m := range found {
			names[kind] = append(names[kind], string(m[1]))
		}
	}
	seen := 0
	readDocuments(t, func(path, text string) {
		for _, m := range namedCommand.FindAllStringSubmatch(text, -1) {
			seen++
			if !slices.Contains(names[m[1]], m[2]) {
				t.Errorf("%s: there is no %s; there are %v", path, m[0], names[m[1]])
			}
		}
	})
	if seen < 20 {
		t.Error("only " + strconv.Itoa(seen) + " commands were found in sentences")
	}
}
