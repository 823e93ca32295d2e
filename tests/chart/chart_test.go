// Package chart checks the files of deploy by the types of the programs that read them. Helm's own
// engine renders the chart, and the objects are decoded into the types of Kubernetes; the file for
// Envoy is decoded into those of Envoy; the library of docker compose merges the compose files.
//
// It is a module of its own, so that those types are no dependencies of Parlor.
package chart

import (
	"fmt"
	"maps"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const deploy = "../../deploy"

// serviceMonitor is what the Prometheus operator reads, as far as the chart has it.
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// kinds are the types of the objects that the chart may have.
var kinds = map[string]func() any{
	"v1 ConfigMap":                            func() any { return new(corev1.ConfigMap) },
	"v1 Service":                              func() any { return new(corev1.Service) },
	"v1 ServiceAccount":                       func() any { return new(corev1.ServiceAccount) },
	"apps/v1 Deployment":                      func() any { return new(appsv1.Deployment) },
	"autoscaling/v2 HorizontalPodAutoscaler":  func() any { return new(autoscalingv2.HorizontalPodAutoscaler) },
	"networking.k8s.io/v1 Ingress":            func() any { return new(networkingv1.Ingress) },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return new(networkingv1.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":           func() any { return new(policyv1.PodDisruptionBudget) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return new(serviceMonitor) },
}

const required = `
image: {repository: registry.example/parlor, tag: "1.0.0"}
existingSecret: parlor
`

// valueSets are the values with which the chart is rendered.
var valueSets = map[string]string{
	"minimal": required,
	"everything": `
image: {repository: registry.example/parlor, tag: "1.0.0", digest: "sha256:` + strings.Repeat("ab", 32) + `"}
imagePullSecrets: [{name: registry}]
existingSecret: parlor
secretKeys: {saveKey: save_key}
redisTLSSecret: redis-tls
settings: {PARLOR_ROOM_SHARDS: "64", PARLOR_DURABILITY: replica}
trustedProxies: [10.42.0.0/16]
resources: {cpuRequest: "1", cpuLimit: "2", memoryMiB: 1024}
state: {kind: claim, claim: parlor-state}
archive: {url: file:///archive, claim: parlor-archive, credentialsSecret: aws}
serviceAccount: {annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/parlor"}}
ingress: {enabled: true, className: nginx, host: play.example, tlsSecret: play-tls}
autoscaling: {enabled: true, minReplicas: 2, maxReplicas: 9, cpuPercent: 60, socketsPerNode: 5000}
metrics: {enabled: true, serviceMonitor: true}
networkPolicy: {redisPeers: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: redis}}}]}
nodeSelector: {kubernetes.io/arch: amd64}
tolerations: [{key: games, operator: Exists, effect: NoSchedule}]
podLabels: {team: games}
podAnnotations: {example.com/note: "yes"}
`,
	"everything off": required + `
podDisruptionBudget: {enabled: false}
networkPolicy: {enabled: false}
topologySpread: false
serviceAccount: {name: shared}
`,
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(path.Join(deploy, "chart"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// render returns the rendered files, or what the schema or a template refuses.
func render(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	c := load(t)
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{
		Name: "arcade", Namespace: "games", Revision: 1, IsInstall: true,
	}, chartutil.DefaultCapabilities.Copy())
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(c, all)
}

var separator = regexp.MustCompile(`(?m)^---$`)

// objects are the objects of a release, by kind. A field that its type lacks is a failure.
type objects map[string][]any

func renderObjects(t *testing.T, values string) objects {
	t.Helper()
	files, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	found := objects{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".yaml" {
			continue
		}
		for _, text := range separator.Split(files[name], -1) {
			object, kind, err := decode(text)
			switch {
			case err != nil:
				t.Errorf("%s: %v\n%s", name, err, text)
			case kind != "":
				found[kind] = append(found[kind], object)
			}
		}
	}
	return found
}

// decode returns an object and its kind, "" for a text without one.
func decode(text string) (object any, kind string, err error) {
	document, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, "", err
	}
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(document, &meta); err != nil || string(document) == "null" {
		return nil, "", err
	}
	construct, known := kinds[meta.APIVersion+" "+meta.Kind]
	if !known {
		return nil, "", fmt.Errorf("the tests know no %s of %s", meta.Kind, meta.APIVersion)
	}
	object = construct()
	faults, err := strictjson.UnmarshalStrict(document, object)
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("%v", faults)
	}
	return object, meta.Kind, err
}

// only returns the one object of a kind.
func only[T any](t *testing.T, o objects) *T {
	t.Helper()
	kind := reflect.TypeFor[T]().Name()
	if len(o[kind]) != 1 {
		t.Fatalf("%d objects of the kind %s", len(o[kind]), kind)
	}
	return o[kind][0].(*T)
}

func TestADecodeFindsAFieldThatKubernetesLacks(t *testing.T) {
	for why, text := range map[string]string{
		"a field":       "apiVersion: v1\nkind: Service\nspec: {sessionAfinity: None}",
		"another case":  "apiVersion: v1\nkind: Service\nspec: {ClusterIP: None}",
		"given twice":   "apiVersion: v1\nkind: Service\nspec: {type: ClusterIP, type: NodePort}",
		"another type":  "apiVersion: v1\nkind: Service\nspec: {ports: [{port: http}]}",
		"a future kind": "apiVersion: apps/v2\nkind: Deployment",
	} {
		if _, _, err := decode(text); err == nil {
			t.Errorf("%s: nothing is found in %s", why, text)
		}
	}
}

// isOpenRoute reports whether a node serves a path to everybody.
func isOpenRoute(t *testing.T, path string) bool {
	t.Helper()
	_, row, found := strings.Cut(readFile(t, "../../handlers/routes.go"), `{method: get, path: "`+path+`", `)
	row, _, _ = strings.Cut(row, "\n")
	return found && !strings.Contains(row, "callers:")
}

func TestTheChartRendersWhatKubernetesTakes(t *testing.T) {
	for name, values := range valueSets {
		t.Run(name, func(t *testing.T) {
			o := renderObjects(t, values)
			want := map[string]map[string]int{
				"minimal": {
					"Deployment": 1, "ConfigMap": 1, "Service": 1, "ServiceAccount": 1, "NetworkPolicy": 1, "PodDisruptionBudget": 1,
				},
				"everything": {
					"Deployment": 1, "ConfigMap": 1, "Service": 2, "ServiceAccount": 1, "NetworkPolicy": 1, "PodDisruptionBudget": 1,
					"HorizontalPodAutoscaler": 1, "Ingress": 1, "ServiceMonitor": 1,
				},
				"everything off": {"Deployment": 1, "ConfigMap": 1, "Service": 1},
			}[name]
			have := map[string]int{}
			for kind, list := range o {
				have[kind] = len(list)
			}
			if !maps.Equal(have, want) {
				t.Fatalf("the chart has %v, want %v", have, want)
			}
			checkDeployment(t, o)
			checkNetwork(t, o)
		})
	}
}

// checkDeployment checks what a node may do, and how one follows another.
func checkDeployment(t *testing.T, o objects) {
	t.Helper()
	d, settings := only[appsv1.Deployment](t, o), only[corev1.ConfigMap](t, o).Data
	pod := d.Spec.Template.Spec
	node := pod.Containers[0]
	if r := d.Spec.Strategy.RollingUpdate; r.MaxSurge.IntValue() != 1 || r.MaxUnavailable.IntValue() != 0 {
		t.Errorf("nodes are replaced by %+v", r)
	}
	if !*pod.SecurityContext.RunAsNonRoot ||
		pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		*node.SecurityContext.AllowPrivilegeEscalation || !*node.SecurityContext.ReadOnlyRootFilesystem ||
		!slices.Equal(node.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
		len(node.SecurityContext.Capabilities.Add) > 0 || *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks {
		t.Errorf("a node may do more than it needs: %+v %+v", pod.SecurityContext, node.SecurityContext)
	}
	drain := duration(t, settings["PARLOR_DRAIN_DELAY"]) + duration(t, settings["PARLOR_DRAIN_TIMEOUT"])
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace < drain+5*time.Second {
		t.Errorf("a node has %v to stop, and drains for %v", grace, drain)
	}
	for probe, want := range map[*corev1.Probe]string{node.LivenessProbe: "/healthz", node.ReadinessProbe: "/readyz"} {
		if probe.HTTPGet.Path != want || !isOpenRoute(t, want) {
			t.Errorf("a probe reads %s, want %s, a route", probe.HTTPGet.Path, want)
		}
	}
	memory := node.Resources.Limits.Memory().Value() >> 20
	if settings["PARLOR_MEMORY_LIMIT_MIB"] != fmt.Sprint(memory*9/10) {
		t.Errorf("the collector starts at %s MiB of %d", settings["PARLOR_MEMORY_LIMIT_MIB"], memory)
	}
	checkSettings(t, settings)
	checkMounts(t, &pod, settings)
	for _, e := range node.Env {
		t.Errorf("a setting stands outside of the ConfigMap: %s", e.Name)
	}
}

// checkSettings checks that every variable is a setting, and that no secret is a variable.
func checkSettings(t *testing.T, settings map[string]string) {
	t.Helper()
	reference := readFile(t, "../../docs/settings.md")
	for name := range settings {
		plain, isFile := strings.CutSuffix(name, "_FILE")
		row := regexp.MustCompile("(?m)^\\| `" + plain + "`(, `…_FILE`)? \\|").FindStringSubmatch(reference)
		switch {
		case row == nil:
			t.Errorf("there is no setting %s", name)
		case isFile != (row[1] != ""):
			t.Errorf("%s is a secret in the open, or a file that is none", name)
		}
	}
}

// checkMounts checks that the files and folders of settings are mounted.
func checkMounts(t *testing.T, pod *corev1.PodSpec, settings map[string]string) {
	t.Helper()
	files := map[string]bool{}
	volumes := map[string]corev1.Volume{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		v, ok := volumes[m.Name]
		if !ok {
			t.Errorf("%s mounts nothing", m.MountPath)
		}
		files[m.MountPath] = true
		if v.Secret != nil {
			for _, item := range v.Secret.Items {
				files[path.Join(m.MountPath, item.Path)] = true
			}
			if !m.ReadOnly {
				t.Errorf("%s can be written", m.MountPath)
			}
		}
	}
	for name, value := range settings {
		folder, isArchive := strings.CutPrefix(value, "file://")
		if (strings.HasSuffix(name, "_FILE") || name == "PARLOR_STATE_DIR" || isArchive) && !files[folder] {
			t.Errorf("%s is %s, which is not mounted: %v", name, value, files)
		}
	}
	if len(volumes) != len(pod.Containers[0].VolumeMounts) {
		t.Errorf("%d volumes and %d mounts", len(volumes), len(pod.Containers[0].VolumeMounts))
	}
}

// checkNetwork checks that selectors find the nodes, and who reaches them.
func checkNetwork(t *testing.T, o objects) {
	t.Helper()
	template := only[appsv1.Deployment](t, o).Spec.Template
	selects := func(what string, labels map[string]string) {
		t.Helper()
		for name, value := range labels {
			if template.Labels[name] != value {
				t.Errorf("%s selects %s=%s, which no node has", what, name, value)
			}
		}
		if len(labels) == 0 {
			t.Errorf("%s selects everything", what)
		}
	}
	ports := map[string]bool{}
	for _, p := range template.Spec.Containers[0].Ports {
		ports[p.Name] = true
	}
	for _, s := range o["Service"] {
		service := s.(*corev1.Service)
		selects(service.Name, service.Spec.Selector)
		if service.Spec.SessionAffinity != "" && service.Spec.SessionAffinity != corev1.ServiceAffinityNone {
			t.Errorf("%s is sticky", service.Name)
		}
		if p := service.Spec.Ports[0]; len(service.Spec.Ports) != 1 || !ports[p.TargetPort.StrVal] {
			t.Errorf("%s has the ports %v", service.Name, service.Spec.Ports)
		}
	}
	for _, p := range o["PodDisruptionBudget"] {
		selects("the budget", p.(*policyv1.PodDisruptionBudget).Spec.Selector.MatchLabels)
	}
	for _, p := range o["NetworkPolicy"] {
		policy := p.(*networkingv1.NetworkPolicy)
		selects("the policy", policy.Spec.PodSelector.MatchLabels)
		if len(policy.Spec.PolicyTypes) != 2 {
			t.Errorf("the policy is about %v", policy.Spec.PolicyTypes)
		}
		for _, rule := range policy.Spec.Ingress {
			if len(rule.From) == 0 || len(rule.Ports) != 1 || !ports[rule.Ports[0].Port.StrVal] {
				t.Errorf("the policy lets in %+v", rule)
			}
		}
	}
	for _, i := range o["Ingress"] {
		ingress := i.(*networkingv1.Ingress)
		service := ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
		if service.Name != only[appsv1.Deployment](t, o).Name || len(ingress.Spec.TLS) != 1 {
			t.Errorf("the Ingress leads to %s, with TLS %v", service.Name, ingress.Spec.TLS)
		}
	}
	for _, h := range o["HorizontalPodAutoscaler"] {
		hpa := h.(*autoscalingv2.HorizontalPodAutoscaler)
		if d := only[appsv1.Deployment](t, o); hpa.Spec.ScaleTargetRef.Name != d.Name || d.Spec.Replicas != nil ||
			len(hpa.Spec.Metrics) != 2 || hpa.Spec.Metrics[1].Pods.Metric.Name != "parlor_realtime_sessions" {
			t.Errorf("the autoscaler is %+v, and the nodes are %v", hpa.Spec, d.Spec.Replicas)
		}
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Error(err)
	}
	return d
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheSchemaRefusesWrongValues(t *testing.T) {
	for why, values := range map[string]string{
		"no image":                      "existingSecret: parlor",
		"no secret":                     "image: {repository: a, tag: b}",
		"an image that moves":           "existingSecret: parlor\nimage: {repository: a, tag: latest}",
		"an unknown name":               required + "replica: 3",
		"an unknown name further in":    required + "metrics: {enable: true}",
		"no node":                       required + "replicas: 0",
		"a text for a number":           required + `replicas: "3"`,
		"a secret among the settings":   required + "settings: {PARLOR_ADMIN_KEY: x}",
		"a file of a secret":            required + "settings: {PARLOR_ADMIN_KEY_FILE: /x}",
		"a setting that the chart sets": required + "settings: {PARLOR_LISTEN: x}",
		"a setting of something else":   required + "settings: {GOMEMLIMIT: 1GiB}",
		"a number among the settings":   required + "settings: {PARLOR_ROOM_SHARDS: 64}",
		"a proxy by its name":           required + "trustedProxies: [proxy.example]",
		"a state of another kind":       required + "state: {kind: hostPath}",
		"a claim without a name":        required + "state: {kind: claim}",
		"an archive without a claim":    required + "archive: {url: file:///archive}",
		"an ingress without TLS":        required + "ingress: {enabled: true, host: play.example}",
		"a policy that lets all in":     required + "networkPolicy: {ingressNamespaces: []}",
		"a monitor without metrics":     required + "metrics: {serviceMonitor: true}",
		"an autoscaler of nothing":      required + "autoscaling: {enabled: true, cpuPercent: 0}",
		"a budget that stops all":       required + "podDisruptionBudget: {maxUnavailable: 0}",
	} {
		if _, err := render(t, values); err == nil {
			t.Errorf("%s is taken", why)
		}
	}
}

// Every object of the schema is closed, so that a misspelled value is noticed.
func TestEveryObjectOfTheSchemaIsClosed(t *testing.T) {
	var schema map[string]any
	if err := yaml.Unmarshal([]byte(readFile(t, deploy+"/chart/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(readFile(t, deploy+"/chart/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	compareNames(t, "values", values, schema)
}

func compareNames(t *testing.T, at string, values, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	if properties == nil {
		return // a map of texts
	}
	if schema["additionalProperties"] != false {
		t.Errorf("%s takes any name", at)
	}
	for name := range properties {
		value, ok := values[name]
		if !ok && name != "global" {
			t.Errorf("values.yaml has no %s.%s", at, name)
		}
		if inner, ok := value.(map[string]any); ok {
			compareNames(t, at+"."+name, inner, properties[name].(map[string]any))
		}
	}
}
