package chart

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// overlays are the combinations of files that can be started.
var overlays = map[string][]string{
	"single":                 nil,
	"sentinel":               {"sentinel"},
	"cluster":                {"cluster"},
	"observability":          {"observability"},
	"sentinel, with metrics": {"sentinel", "observability"},
	"cluster, with metrics":  {"cluster", "observability"},
}

// merge returns what docker compose makes of compose.yaml and overlays. Unknown names are errors.
func merge(t *testing.T, names []string) *types.Project {
	t.Helper()
	dir, err := filepath.Abs(deploy)
	if err != nil {
		t.Fatal(err)
	}
	details := types.ConfigDetails{WorkingDir: dir, Environment: types.Mapping{}}
	for _, name := range append([]string{"compose.yaml"}, names...) {
		if name != "compose.yaml" {
			name = "compose." + name + ".yaml"
		}
		details.ConfigFiles = append(details.ConfigFiles, types.ConfigFile{Filename: filepath.Join(dir, name)})
	}
	project, err := loader.LoadWithContext(t.Context(), details, func(o *loader.Options) {
		o.SetProjectName("parlor", true)
	})
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// made returns the secrets that make-secrets.sh makes.
func made(t *testing.T) []string {
	t.Helper()
	folder := t.TempDir()
	out, err := exec.Command("bash", deploy+"/make-secrets.sh", folder).CombinedOutput()
	if err != nil {
		t.Fatalf("make-secrets.sh: %v\n%s", err, out)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, file.Name())
	}
	return names
}

func TestComposeFilesFitTogether(t *testing.T) {
	secrets := made(t)
	for name, files := range overlays {
		t.Run(name, func(t *testing.T) {
			p := merge(t, files)
			for _, s := range p.Services {
				checkConfined(t, &s)
				checkImage(t, &s)
				checkVolumes(t, p, &s, secrets)
				checkReach(t, &s)
				for _, secret := range s.Secrets {
					file := p.Secrets[secret.Source].File
					if filepath.Dir(file) != filepath.Join(p.WorkingDir, "secrets") || !slices.Contains(secrets, filepath.Base(file)) {
						t.Errorf("%s has the secret %s, %s, which make-secrets.sh does not make", s.Name, secret.Source, file)
					}
				}
			}
			checkNode(t, p)
		})
	}
}

func checkConfined(t *testing.T, s *types.ServiceConfig) {
	t.Helper()
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 || s.Privileged ||
		!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) || s.MemLimit == 0 || s.PidsLimit == 0 ||
		s.NetworkMode != "" || s.Logging == nil {
		t.Errorf("%s may do more than it needs: %+v", s.Name, s)
	}
	if s.Name != "node" && (s.User == "" || s.User == "root" || strings.HasPrefix(s.User, "0")) {
		t.Errorf("%s runs as %q", s.Name, s.User)
	}
}

// An image is named by an exact version.
var exactImage = regexp.MustCompile(`^([a-z]+/)?[a-z]+:v?\d+\.\d+\.\d+(-[a-z]+)?(@sha256:[0-9a-f]{64})?$`)

func checkImage(t *testing.T, s *types.ServiceConfig) {
	t.Helper()
	if s.Build == nil && !exactImage.MatchString(s.Image) {
		t.Errorf("the image of %s is %q", s.Name, s.Image)
	}
}

func checkVolumes(t *testing.T, p *types.Project, s *types.ServiceConfig, secrets []string) {
	t.Helper()
	targets := map[string]bool{}
	for _, v := range s.Volumes {
		if targets[v.Target] {
			t.Errorf("%s has %s twice", s.Name, v.Target)
		}
		targets[v.Target] = true
		switch v.Type {
		case types.VolumeTypeBind:
			_, err := os.Stat(v.Source)
			folder, name := filepath.Split(v.Source)
			if filepath.Clean(folder) == filepath.Join(p.WorkingDir, "secrets") && slices.Contains(secrets, name) {
				err = nil
			}
			if err != nil || !v.ReadOnly {
				t.Errorf("%s mounts %s, which is not there or can be written: %v", s.Name, v.Source, err)
			}
		case types.VolumeTypeVolume:
			if _, ok := p.Volumes[v.Source]; !ok {
				t.Errorf("%s has the volume %s, which is not there", s.Name, v.Source)
			}
		}
	}
	if slices.Contains(s.Command, "/etc/redis/start.sh") && !targets["/etc/redis/start.sh"] {
		t.Errorf("%s has no start.sh", s.Name)
	}
}

// checkReach checks who reaches a container: the store only nodes, and the machine only the
// balancer.
func checkReach(t *testing.T, s *types.ServiceConfig) {
	t.Helper()
	networks := slices.Sorted(maps.Keys(s.Networks))
	want := map[string]string{
		"balancer": "front", "node": "front store", "prometheus": "monitoring", "grafana": "dashboards monitoring",
	}[s.Name]
	if want == "" {
		want = "store"
	}
	if got := strings.ReplaceAll(strings.Join(networks, " "), "front monitoring store", "front store"); got != want {
		t.Errorf("%s is in the networks %s, want %s", s.Name, got, want)
	}
	for _, port := range s.Ports {
		if s.Name != "balancer" && port.HostIP != "127.0.0.1" {
			t.Errorf("%s has the port %s of every address of the machine", s.Name, port.Published)
		}
	}
}

// checkNode checks that a node waits for its store, knows its address, and has only settings that
// there are.
func checkNode(t *testing.T, p *types.Project) {
	t.Helper()
	node := p.Services["node"]
	settings := map[string]string{}
	for name, value := range node.Environment {
		settings[name] = *value
	}
	checkSettings(t, settings)
	for name, value := range settings {
		secret, isSecret := strings.CutPrefix(value, "/run/secrets/")
		has := slices.ContainsFunc(node.Secrets, func(s types.ServiceSecretConfig) bool { return s.Source == secret })
		if isSecret && !has {
			t.Errorf("%s is %s, which the node lacks", name, value)
		}
	}
	if len(node.Secrets) != 3 {
		t.Errorf("a node has the secrets %v", node.Secrets)
	}
	for name := range node.DependsOn {
		if name == "redis" && settings["PARLOR_REDIS_URL_FILE"] != "/run/secrets/redis_url" {
			t.Errorf("a node waits for %s", name)
		}
	}
	_, single := p.Services["redis"]
	url := readFile(t, deploy+"/make-secrets.sh")
	for _, host := range regexp.MustCompile(`(?:redis|sentinel)-\d`).FindAllString(url, -1) {
		kind, _, _ := strings.Cut(host, "-")
		_, there := p.Services[host]
		_, sentinels := p.Services["sentinel-1"]
		if !single && !there && (kind == "sentinel") == sentinels {
			t.Errorf("there is no %s", host)
		}
	}
}

func TestTheClusterIsFormedOfAllItsServers(t *testing.T) {
	p := merge(t, []string{"cluster"})
	former := p.Services["cluster"]
	var servers []string
	addresses := map[string]bool{}
	for _, s := range p.Services {
		if slices.Equal(s.Command[:min(2, len(s.Command))], []string{"redis-server", "/etc/redis/cluster.conf"}) {
			servers = append(servers, s.Name+":6379")
			addresses[s.Networks["store"].Ipv4Address] = true
			if !slices.Equal(s.Command[2:], []string{"--cluster-announce-hostname", s.Name}) {
				t.Errorf("%s announces %v", s.Name, s.Command[2:])
			}
			if _, waits := former.DependsOn[s.Name]; !waits {
				t.Errorf("the Cluster is formed before %s is there", s.Name)
			}
		}
	}
	slices.Sort(servers)
	if tail := former.Command[len(former.Command)-7:]; !slices.Equal(tail, append([]string{"1"}, servers...)) ||
		len(addresses) != 6 || addresses[""] {
		t.Errorf("the Cluster is formed of %v; the servers are %v, at %v", tail, servers, addresses)
	}
	if got := fmt.Sprint(former.Command[2]); !strings.Contains(got, "cat /run/secrets/redis_admin_password") {
		t.Errorf("the Cluster is formed by %s", got)
	}
}

func TestEverySentinelAndServerAnnouncesItsName(t *testing.T) {
	p := merge(t, []string{"sentinel"})
	count := map[string]int{}
	data := map[string]bool{}
	for _, s := range p.Services {
		if len(s.Command) < 3 || s.Command[0] != "/etc/redis/start.sh" {
			continue
		}
		count[s.Command[1]]++
		for _, v := range s.Volumes {
			if v.Target == "/data" {
				data[v.Source] = true
			}
		}
		isReplica := s.Command[1] == "server" && s.Name != "redis-1"
		if s.Command[2] != s.Name || isReplica && !slices.Equal(s.Command[3:], []string{"redis-1"}) {
			t.Errorf("%s is started by %v", s.Name, s.Command)
		}
	}
	if count["server"] != 3 || count["sentinel"] != 3 || len(data) != 6 {
		t.Errorf("%v, with the volumes %v", count, data)
	}
}
