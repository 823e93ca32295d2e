package chart

import (
	"fmt"
	"strings"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"
)

// readEnvoy decodes a file for Envoy. A field that its type lacks is an error, and so is a value
// out of its bounds; both also inside of the settings of each extension.
func readEnvoy(text string) (*bootstrap.Bootstrap, int, error) {
	document, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, 0, err
	}
	b := &bootstrap.Bootstrap{}
	if err := protojson.Unmarshal(document, b); err != nil {
		return nil, 0, err
	}
	extensions, err := validate(b)
	return b, extensions, err
}

// validate checks a message and those packed inside of it, and returns how many are packed.
func validate(m proto.Message) (extensions int, err error) {
	if packed, ok := m.(*anypb.Any); ok {
		inner, err := packed.UnmarshalNew()
		if err != nil {
			return 0, err
		}
		n, err := validate(inner)
		return n + 1, err
	}
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		if err := v.ValidateAll(); err != nil {
			return 0, err
		}
	}
	visit := func(value protoreflect.Value) {
		n, inner := validate(value.Message().Interface())
		extensions += n
		if inner != nil && err == nil {
			err = inner
		}
	}
	m.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap() && field.MapValue().Message() != nil:
			value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { visit(v); return true })
		case field.IsList() && field.Message() != nil:
			for i := range value.List().Len() {
				visit(value.List().Get(i))
			}
		case !field.IsMap() && !field.IsList() && field.Message() != nil:
			visit(value)
		}
		return true
	})
	return extensions, err
}

func TestEnvoyReadsItsFile(t *testing.T) {
	text := readFile(t, deploy+"/envoy.yaml")
	b, extensions, err := readEnvoy(text)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Count(text, `"@type":`); extensions != want || want == 0 {
		t.Errorf("%d of %d extensions were checked", extensions, want)
	}
	nodes := b.StaticResources.Clusters[0]
	check := nodes.HealthChecks[0].GetHttpHealthCheck()
	if check.Path != "/balancez" || len(check.ExpectedStatuses) != 1 || check.ExpectedStatuses[0].Start != 200 ||
		!isOpenRoute(t, check.Path) {
		t.Errorf("Envoy asks %v", check)
	}
	if nodes.CommonLbConfig.HealthyPanicThreshold.Value != 0 {
		t.Error("Envoy sends requests to nodes that are not healthy")
	}
}

func TestADecodeFindsWhatEnvoyLacks(t *testing.T) {
	text := readFile(t, deploy+"/envoy.yaml")
	for why, pair := range map[string][2]string{
		"a field":                 {"connect_timeout:", "conect_timeout:"},
		"a field of an extension": {"max_request_headers_kb:", "max_request_header_kb:"},
		"a bound":                 {"path: /balancez", `path: ""`},
		"a bound of an extension": {"max_request_bytes: 327680", "max_request_bytes: 0"},
		"a value":                 {"lb_policy: LEAST_REQUEST", "lb_policy: LEAST_CONN"},
	} {
		wrong := strings.Replace(text, pair[0], pair[1], 1)
		if _, _, err := readEnvoy(wrong); err == nil || wrong == text {
			t.Error(fmt.Sprintf("%s: nothing is found in", why), pair[1])
		}
	}
}
