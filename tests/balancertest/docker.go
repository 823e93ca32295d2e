//go:build linux

package balancertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// Docker is the docker command of deploy/roll.sh: it starts and stops the nodes of a fleet instead
// of containers. It knows the subcommands of the script, and fails for any other.
type Docker struct {
	Folder string // has the command docker: put it first into the PATH

	t     testing.TB
	fleet *Fleet

	mu         sync.Mutex
	containers []*container
	calls      int
	script     *exec.Cmd // that runs
	beforeStop func()    // is called before a container is stopped; nil for nothing
}

// container is a node as Docker knows it.
type container struct {
	id       string
	created  time.Time
	member   *Member
	exitCode int
}

const dockerSocket = "PARLOR_TEST_DOCKER" // variable with the path of the socket of the test

// dockerCall is one call of the command, and dockerResult what it prints and returns.
type (
	dockerCall struct {
		Args []string `json:"args"`
	}
	dockerResult struct {
		Stdout string `json:"stdout"`
		Stderr string `json:"stderr"`
		Code   int    `json:"code"`
	}
)

// NewDocker returns the command for a fleet, whose nodes are its containers.
func NewDocker(t testing.TB, fleet *Fleet) *Docker {
	t.Helper()
	dir := testkit.Must(os.MkdirTemp("", "docker-"))(t) // short: the path of a socket has few bytes
	d := &Docker{t: t, fleet: fleet, Folder: dir}
	for _, m := range fleet.Members() {
		d.add(m)
	}
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "docker"))
	}
	testkit.Check(t, err)
	l := testkit.Must(net.Listen("unix", d.socket()))(t)
	server := &http.Server{Handler: http.HandlerFunc(d.serve), ReadHeaderTimeout: time.Second}
	ended := make(chan struct{})
	go func() { _ = server.Serve(l); close(ended) }()
	t.Cleanup(func() { _ = server.Close(); <-ended; _ = os.RemoveAll(dir) })
	return d
}

func (d *Docker) socket() string { return filepath.Join(d.Folder, "s") }

// Environ returns the environment of a script that calls the command.
func (d *Docker) Environ(more ...string) []string {
	return slices.Concat(os.Environ(), []string{
		"PATH=" + d.Folder + string(os.PathListSeparator) + os.Getenv("PATH"), dockerSocket + "=" + d.socket(),
	}, more)
}

// Roll runs a copy of deploy/roll.sh and returns what it printed and its status. Settings are
// NAME=value of the script.
func (d *Docker) Roll(settings ...string) (printed string, status int) {
	d.t.Helper()
	script := filepath.Join(d.Folder, "roll.sh") // it keeps a file beside itself
	text, err := os.ReadFile(filepath.Join(deployFolder(), "roll.sh"))
	if err == nil {
		err = os.WriteFile(script, text, 0o700)
	}
	testkit.Check(d.t, err)
	c := exec.Command(script)
	c.Env = d.Environ(settings...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.WaitDelay = time.Second // what it started may outlive it when it is killed
	testkit.Check(d.t, c.Start(), "run roll.sh")
	d.mu.Lock()
	d.script = c
	d.mu.Unlock()
	_ = c.Wait()
	return out.String(), c.ProcessState.ExitCode()
}

// KillScript ends the script that runs at once, as an interrupted terminal might.
func (d *Docker) KillScript() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.script.Process.Kill()
}

// BeforeStop calls f before each container is stopped.
func (d *Docker) BeforeStop(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beforeStop = f
}

// runAsDocker calls the test when this process is its command docker, and returns the status.
func runAsDocker() (status int, isDocker bool) {
	socket := os.Getenv(dockerSocket)
	if socket == "" || filepath.Base(os.Args[0]) != "docker" {
		return 0, false
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial}}
	var result dockerResult
	body, err := wire.Marshal(dockerCall{os.Args[1:]})
	if err == nil {
		var response *http.Response
		response, err = client.Post("http://test/", "application/json", bytes.NewReader(body))
		if err == nil {
			body, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
		}
		if err == nil {
			err = wire.Unmarshal(body, &result)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125, true
	}
	fmt.Fprint(os.Stdout, result.Stdout)
	fmt.Fprint(os.Stderr, result.Stderr)
	return result.Code, true
}

func (d *Docker) serve(w http.ResponseWriter, r *http.Request) {
	var call dockerCall
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = wire.Unmarshal(body, &call)
	}
	var result dockerResult
	if err == nil {
		d.mu.Lock()
		d.calls++
		d.mu.Unlock()
		result = d.run(call.Args)
	} else {
		result = failed("%v", err)
	}
	if body, err = wire.Marshal(result); err == nil {
		_, _ = w.Write(body)
	}
}

func failed(format string, args ...any) dockerResult {
	return dockerResult{Stderr: fmt.Sprintf(format, args...) + "\n", Code: 1}
}

// commands are the calls that the command knows. What follows the words is one argument.
var commands = []struct {
	pattern *regexp.Regexp
	run     func(d *Docker, argument string) dockerResult
}{
	{regexp.MustCompile(`^compose(?: -f \S+)* ps --all --quiet node$`), (*Docker).list},
	{
		regexp.MustCompile(`^compose(?: -f \S+)* up --detach --no-deps --no-recreate --scale node=(\d+) node$`),
		(*Docker).up,
	},
	{regexp.MustCompile(`^exec (\S+) /parlor healthcheck --balancer$`), forContainer((*Docker).healthcheck)},
	{
		regexp.MustCompile(`^inspect --format {{\.State\.Running}} {{\.RestartCount}} (\S+)$`),
		forContainer(func(_ *Docker, c *container) dockerResult {
			return dockerResult{Stdout: fmt.Sprintf("%t 0\n", c.isRunning())}
		}),
	},
	{
		regexp.MustCompile(`^inspect --format {{\.State\.ExitCode}} (\S+)$`),
		forContainer(func(_ *Docker, c *container) dockerResult {
			return dockerResult{Stdout: fmt.Sprintln(c.exitCode)}
		}),
	},
	{
		regexp.MustCompile(`^inspect --format {{\.Created}} {{\.Id}} (\S+)$`),
		forContainer(func(_ *Docker, c *container) dockerResult {
			return dockerResult{Stdout: c.created.Format(time.RFC3339Nano) + " " + c.id + "\n"}
		}),
	},
	{
		regexp.MustCompile(`^logs --tail 20 (\S+)$`),
		forContainer(func(_ *Docker, c *container) dockerResult {
			lines := slices.Collect(strings.Lines(c.member.Log()))
			return dockerResult{Stderr: strings.Join(lines[max(0, len(lines)-20):], "")}
		}),
	},
	{regexp.MustCompile(`^stop (\S+)$`), forContainer((*Docker).stop)},
	{regexp.MustCompile(`^rm (\S+)$`), forContainer((*Docker).remove)},
	{regexp.MustCompile(`^rm --force (\S+)$`), forContainer((*Docker).kill)},
}

func (d *Docker) run(args []string) dockerResult {
	line := strings.Join(args, " ")
	for _, c := range commands {
		if m := c.pattern.FindStringSubmatch(line); m != nil {
			return c.run(d, m[len(m)-1])
		}
	}
	return failed("docker of the tests does not know: docker %s", line)
}

func (c *container) isRunning() bool { return c.member.Node != nil && !c.member.HasEnded() }

func (d *Docker) add(m *Member) *container {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &container{id: fmt.Sprintf("%012x", 0xc0ffee<<16|d.calls<<4|len(d.containers)), created: time.Now(), member: m}
	d.containers = append(d.containers, c)
	return c
}

// forContainer looks up the container that a call names.
func forContainer(run func(*Docker, *container) dockerResult) func(*Docker, string) dockerResult {
	return func(d *Docker, id string) dockerResult {
		d.mu.Lock()
		i := slices.IndexFunc(d.containers, func(c *container) bool { return c.id == id })
		var c *container
		if i >= 0 {
			c = d.containers[i]
		}
		d.mu.Unlock()
		if c == nil {
			return failed("Error: No such container: %s", id)
		}
		return run(d, c)
	}
}

func (d *Docker) list(string) dockerResult {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ids strings.Builder
	for _, c := range d.containers {
		fmt.Fprintln(&ids, c.id)
	}
	return dockerResult{Stdout: ids.String()}
}

// up starts containers until there are as many, with the settings and the program of now.
func (d *Docker) up(count string) dockerResult {
	wanted, err := strconv.Atoi(count)
	if err != nil {
		return failed("%v", err)
	}
	for d.size() < wanted {
		m, err := d.fleet.tryStartAt(d.fleet.PublishAddress())
		d.add(m)
		if err != nil && m.Node == nil {
			return failed("%v", err)
		}
	}
	return dockerResult{}
}

func (d *Docker) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.containers)
}

// healthcheck runs the command of the image.
func (d *Docker) healthcheck(c *container) dockerResult {
	check := exec.Command(nodetest.Binary(d.t), "healthcheck", "--balancer")
	check.Env = []string{
		"PARLOR_LISTEN=" + strings.TrimPrefix(c.member.URL, "http://"),
		"PARLOR_INTERNAL_LISTEN=" + strings.TrimPrefix(c.member.InternalURL, "http://"),
	}
	out, err := check.CombinedOutput()
	if err != nil {
		return failed("%s", out)
	}
	return dockerResult{Stdout: string(out)}
}

func (d *Docker) stop(c *container) dockerResult {
	d.mu.Lock()
	before := d.beforeStop
	d.mu.Unlock()
	if before != nil {
		before()
	}
	if c.isRunning() {
		c.exitCode = d.fleet.Stop(c.member)
	}
	return dockerResult{}
}

func (d *Docker) remove(c *container) dockerResult {
	if c.isRunning() {
		return failed("Error: cannot remove container %s: container is running", c.id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.containers = slices.DeleteFunc(d.containers, func(other *container) bool { return c == other })
	return dockerResult{}
}

func (d *Docker) kill(c *container) dockerResult {
	if c.member.Node != nil {
		c.member.Node.Kill()
	}
	d.fleet.remove(c.member)
	return d.remove(c)
}
