package archtest

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/tests/testkit"
	"go.yaml.in/yaml/v3"
)

func TestSecretsStayOutOfCommitsAndImages(t *testing.T) {
	for _, name := range []string{".gitignore", ".dockerignore"} {
		text := testkit.Must(os.ReadFile(filepath.Join(root(t), name)))(t)
		for _, secret := range []string{"/deploy/.env", "/deploy/secrets/"} {
			if !slices.Contains(strings.Split(string(text), "\n"), secret) {
				t.Errorf("%s lets %s through", name, secret)
			}
		}
	}
}

// service is what the tests read of a service of compose.yaml. Fields that it does not know are in
// Other.
type service struct {
	Image       string
	User        string
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	CapAdd      []string `yaml:"cap_add"`
	SecurityOpt []string `yaml:"security_opt"`
	MemLimit    string   `yaml:"mem_limit"`
	PidsLimit   int      `yaml:"pids_limit"`
	Privileged  bool
	NetworkMode string `yaml:"network_mode"`
	Ports       []string
	Volumes     []string
	Secrets     []string
	Environment map[string]string
	Networks    any // a list, or a map by name
	EnvFile     []struct {
		Path     string
		Required bool
	} `yaml:"env_file"`
}

// networks returns the names of the service's networks.
func (s service) networks() []string {
	switch list := s.Networks.(type) {
	case []any:
		names := make([]string, len(list))
		for i, name := range list {
			names[i], _ = name.(string)
		}
		return names
	case map[string]any:
		return slices.Sorted(maps.Keys(list))
	}
	return nil
}

type compose struct {
	Services map[string]service
	Networks map[string]struct{ Internal bool }
	Secrets  map[string]struct{ File string }
}

func readCompose(t *testing.T) compose {
	t.Helper()
	var c compose
	text, err := os.ReadFile(filepath.Join(root(t), "deploy/compose.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &c)
	}
	if err != nil || len(c.Services) != 3 {
		t.Fatalf("%d services, %v", len(c.Services), err)
	}
	return c
}

func TestContainersAreConfined(t *testing.T) {
	c := readCompose(t)
	for name, s := range c.Services {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 || s.Privileged ||
			!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) || s.MemLimit == "" || s.PidsLimit == 0 ||
			s.NetworkMode != "" {
			t.Errorf("%s may do more than it needs: %+v", name, s)
		}
		if len(s.Ports) > 0 != (name == "balancer") {
			t.Errorf("%s has ports on the machine: %v", name, s.Ports)
		}
		for _, volume := range s.Volumes {
			if strings.Contains(volume, "docker.sock") || strings.HasPrefix(volume, ".") && !strings.HasSuffix(volume, ":ro") {
				t.Errorf("%s can write %s", name, volume)
			}
		}
		if name != "node" && (s.User == "" || s.User == "root" || strings.HasPrefix(s.User, "0")) {
			t.Errorf("%s runs as %q", name, s.User)
		}
	}
	dockerfile := readText(t, "deploy/Dockerfile")
	if !strings.Contains(dockerfile, "\nUSER 65532:65532\n") {
		t.Error("a node runs as root")
	}
	if regexp.MustCompile(`(?m)^(EXPOSE .*9090|ENV .*PARLOR_INTERNAL_LISTEN)`).MatchString(dockerfile) {
		t.Error("the image opens the internal address to other machines")
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text := testkit.Must(os.ReadFile(filepath.Join(root(t), name)))(t)
	return string(text)
}

func TestOnlyNodesReachTheStore(t *testing.T) {
	c := readCompose(t)
	if !c.Networks["store"].Internal {
		t.Error("the store's network has a way out")
	}
	for name, want := range map[string][]string{
		"redis": {"store"}, "node": {"front", "store"}, "balancer": {"front"},
	} {
		if got := c.Services[name].networks(); !slices.Equal(got, want) {
			t.Errorf("%s is in the networks %v, want %v", name, got, want)
		}
	}
	front, _ := c.Services["balancer"].Networks.(map[string]any)["front"].(map[string]any)
	if proxy := c.Services["node"].Environment["PARLOR_TRUSTED_PROXIES"]; proxy == "" || proxy != front["ipv4_address"] {
		t.Errorf("nodes trust %q and the balancer is at %v", proxy, front["ipv4_address"])
	}
}

// A secret is a file in the container, never a variable: those are in `docker inspect`.
func TestSecretsAreFilesOfTheOperator(t *testing.T) {
	c := readCompose(t)
	script := readText(t, "deploy/make-secrets.sh")
	for name, secret := range c.Secrets {
		if secret.File != "secrets/"+name || !regexp.MustCompile(`(?m)^make_file `+name+` `).MatchString(script) {
			t.Errorf("make-secrets.sh does not make %s at %s", name, secret.File)
		}
	}
	if strings.Contains(script, "redis_users.acl store_users") && !strings.Contains(readText(t, "deploy/redis/redis.conf"),
		"\naclfile /run/secrets/redis_users.acl\n") {
		t.Error("Redis does not read its users")
	}
	for name, s := range c.Services {
		for _, secret := range s.Secrets {
			if c.Secrets[secret].File == "" {
				t.Errorf("%s has the secret %s, which is not there", name, secret)
			}
		}
	}
	node := c.Services["node"]
	for _, e := range config.EntriesWithoutValues() {
		path, isFile := node.Environment[e.Env+"_FILE"]
		switch {
		case !e.Secret:
		case node.Environment[e.Env] != "":
			t.Errorf("%s is a variable", e.Env)
		case slices.Contains([]string{"redis-url", "admin-key", "signing-key"}, e.Name) && !isFile,
			isFile && !slices.Contains(node.Secrets, strings.TrimPrefix(path, "/run/secrets/")):
			t.Errorf("%s_FILE is %q, and the secrets are %v", e.Env, path, node.Secrets)
		}
	}
	for _, file := range node.EnvFile {
		if file.Required {
			t.Errorf("nodes need %s", file.Path)
		}
	}
	hex := regexp.MustCompile(`[0-9a-f]{32}`)
	for _, name := range []string{
		"compose.yaml", "redis/users.acl", "redis/redis.conf", "haproxy.cfg", ".env.example",
		"nginx.conf", "Caddyfile", "envoy.yaml", "parlor.service", "chart/values.yaml", "alerts.yaml",
		"compose.sentinel.yaml", "compose.cluster.yaml", "compose.observability.yaml", "dashboards/parlor.json",
	} {
		text := regexp.MustCompile(`@sha256:[0-9a-f]{64}`).ReplaceAllString(readText(t, "deploy/"+name), "")
		if hex.MatchString(text) {
			t.Errorf("deploy/%s has what looks like a secret", name)
		}
	}
}

func TestTheStoreIsBounded(t *testing.T) {
	text := readText(t, "deploy/redis/redis.conf")
	for _, line := range []string{
		"appendonly yes", "appendfsync always", "maxmemory-policy noeviction", "maxmemory 1gb",
	} {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("redis.conf has no %s", line)
		}
	}
	if limit := readCompose(t).Services["redis"].MemLimit; limit != "2g" {
		t.Errorf("the container has %s for a store of 1 GB, which needs as much again to rewrite its file", limit)
	}
}

// An image is named by an exact version: a tag such as 7.2 changes under its users.
var exactImage = regexp.MustCompile(`^[a-z]+:(\d+)\.(\d+)\.(\d+)-[a-z]+(@sha256:[0-9a-f]{64})?$`)

func TestImagesAreExactAndPatched(t *testing.T) {
	images := map[string]string{}
	for name, s := range readCompose(t).Services {
		images[name] = s.Image
	}
	base := regexp.MustCompile(`(?m)^FROM (\S+) AS build$`)
	images["build"] = base.FindStringSubmatch(readText(t, "deploy/Dockerfile"))[1]
	for name, oldest := range map[string][3]int{
		"redis":    {7, 2, 11}, // older ones run code of a script (CVE-2025-49844)
		"balancer": {2, 8, 16},
		"build":    {1, 26, 0},
	} {
		m := exactImage.FindStringSubmatch(images[name])
		if m == nil {
			t.Errorf("the image of %s is %q", name, images[name])
			continue
		}
		var version [3]int
		for i := range version {
			version[i], _ = strconv.Atoi(m[i+1])
		}
		if version[0] != oldest[0] || version[1] != oldest[1] || version[2] < oldest[2] {
			t.Errorf("the image of %s is %s, want %v or a later patch", name, images[name], oldest)
		}
	}
}

// copyDeploy copies the folder deploy for a script that changes it.
func copyDeploy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	testkit.Check(t, os.CopyFS(dir, os.DirFS(filepath.Join(root(t), "deploy"))))
	return dir
}

func TestPinAddsTheDigestOfEveryImageAndNothingElse(t *testing.T) {
	dir, bin := copyDeploy(t), t.TempDir()
	digests := []string{strings.Repeat("ab", 32), strings.Repeat("cd", 32)}
	pin := func(printed string) error {
		t.Helper()
		docker := "#!/bin/sh\n[ \"$1 $2 $3\" = 'buildx imagetools inspect' ] || exit 9\necho " + printed + "\n"
		testkit.Check(t, os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o755))
		c := exec.Command("bash", filepath.Join(dir, "pin.sh"))
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		return c.Run()
	}
	if err := pin("'no such manifest'"); err == nil {
		t.Error("an answer that is no digest was taken")
	}
	for _, digest := range digests { // the second run replaces the first one's
		testkit.Check(t, pin("sha256:"+digest))
		for name, want := range map[string]int{
			"compose.yaml": 2, "compose.observability.yaml": 2, "compose.sentinel.yaml": 0, "Dockerfile": 1,
		} {
			text := testkit.Must(os.ReadFile(filepath.Join(dir, name)))(t)
			original := readText(t, "deploy/"+name)
			without := strings.ReplaceAll(string(text), "@sha256:"+digest, "")
			if n := strings.Count(string(text), "@sha256:"+digest); n != want ||
				without != regexp.MustCompile(`@sha256:[0-9a-f]{64}`).ReplaceAllString(original, "") {
				t.Errorf("%s has %d digests, or something else changed:\n%s", name, n, text)
			}
		}
	}
}

// The balancer's container gets exactly the variables that its file needs.
func TestTheBalancersFileIsValidWithTheVariablesOfItsContainer(t *testing.T) {
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		haproxy = "/usr/sbin/haproxy"
	}
	dir := copyDeploy(t)
	if out, err := exec.Command("bash", filepath.Join(dir, "make-secrets.sh")).CombinedOutput(); err != nil {
		t.Fatalf("make-secrets.sh: %v\n%s", err, out)
	}
	check := exec.Command(haproxy, "-c", "-f", filepath.Join(dir, "haproxy.cfg"))
	for name, value := range readCompose(t).Services["balancer"].Environment {
		if name == "PARLOR_NODES" {
			value = "localhost:8080" // the name is Docker's
		}
		if name == "PARLOR_CERTIFICATE" {
			value = filepath.Join(dir, "secrets/tls")
		}
		// ${NAME:-default}
		check.Env = append(check.Env, name+"="+regexp.MustCompile(`\$\{\w+:-(.*)\}`).ReplaceAllString(value, "$1"))
	}
	out, err := check.CombinedOutput()
	if err != nil || strings.Contains(string(out), "WARNING") {
		t.Errorf("haproxy -c: %v\n%s", err, out)
	}
}

func TestDockerReadsTheComposeFile(t *testing.T) {
	if err := exec.Command("docker", "compose", "version").Run(); err != nil {
		t.Skipf("there is no docker compose here: %v", err)
	}
	dir := copyDeploy(t)
	c := exec.Command("docker", "compose", "-f", filepath.Join(dir, "compose.yaml"), "config", "--quiet")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("docker compose config: %v\n%s", err, out)
	}
}

// The unit starts what it should, from files that are there, and gives a node the time that it
// needs.
func TestTheUnitOfSystemdSuitsANode(t *testing.T) {
	text := readText(t, "deploy/parlor.service")
	one := func(name string) string {
		t.Helper()
		m := regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(text, -1)
		if len(m) != 1 {
			t.Fatalf("%s is set %d times", name, len(m))
		}
		return m[0][1]
	}
	if one("RestartPreventExitStatus") != strconv.Itoa(config.ExitStatus) || one("KillSignal") != "SIGTERM" ||
		one("Type") != "notify" {
		t.Error("the unit does not read the exit status, or ends a node by another signal than its own")
	}
	var drain time.Duration
	secrets := map[string]bool{}
	for _, e := range config.EntriesWithoutValues() {
		secrets[e.Env] = e.Secret
	}
	for _, m := range regexp.MustCompile("`drain-(?:delay|timeout)` \\| `([^`]+)`").FindAllStringSubmatch(
		config.ReferenceMarkdown(), 2) {
		d := testkit.Must(time.ParseDuration(m[1]))(t)
		drain += d
	}
	stop, err := strconv.Atoi(one("TimeoutStopSec"))
	if err != nil || drain == 0 || time.Duration(stop)*time.Second < drain+5*time.Second {
		t.Errorf("a node gets %d s to stop, and drains for %v", stop, drain)
	}
	script := readText(t, "deploy/make-secrets.sh")
	credentials := map[string]bool{}
	credential := regexp.MustCompile(`(?m)^LoadCredential=(\w+):/etc/parlor/secrets/(\w+)$`)
	for _, m := range credential.FindAllStringSubmatch(text, -1) {
		credentials[m[1]] = true
		if m[1] != m[2] || !strings.Contains(script, "\nmake_file "+m[1]+" ") {
			t.Errorf("make-secrets.sh does not make %s", m[2])
		}
	}
	variable := regexp.MustCompile(`(?m)^Environment=(PARLOR_\w+?)(_FILE)?=(.*)$`)
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		isSecret, known := secrets[m[1]]
		if !known || isSecret != (m[2] != "") || isSecret && !credentials[strings.TrimPrefix(m[3], "%d/")] {
			t.Errorf("%s is no setting, or a secret that is no credential", m[0])
		}
	}
	for _, line := range []string{
		"NoNewPrivileges=yes", "ProtectSystem=strict", "DynamicUser=yes", "CapabilityBoundingSet=", "StateDirectory=parlor",
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the unit has no %s", line)
		}
	}
}

func TestSystemdReadsTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skipf("there is no systemd here: %v", err)
	}
	unit := filepath.Join(t.TempDir(), "parlor.service")
	text := strings.Replace(readText(t, "deploy/parlor.service"), "=/usr/local/bin/parlor ", "=/bin/true ", 1)
	testkit.Check(t, os.WriteFile(unit, []byte(text), 0o600))
	// verify also complains of other units on the machine.
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), "parlor.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err = exec.Command(analyze, "security", "--offline=yes", "--no-pager", "--threshold=15", unit).CombinedOutput()
	if err != nil {
		t.Errorf("the exposure of the unit is above 1.5: %v\n%s", err, out)
	}
}
