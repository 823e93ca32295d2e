package handlers_test

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/parlor-games/parlor/handlers"
)

// queryParametersOf returns the query parameters that openapi.yaml has for an operation, in its
// order.
func queryParametersOf(item *openapi3.PathItem, operation *openapi3.Operation) (list []*openapi3.Parameter) {
	for _, p := range slices.Concat(item.Parameters, operation.Parameters) {
		if p.Value.In == openapi3.ParameterInQuery {
			list = append(list, p.Value)
		}
	}
	return list
}

func TestOpenAPIDescribesEveryQueryParameter(t *testing.T) {
	served := map[string][]string{}
	for _, o := range handlers.Operations() {
		if len(o.Query) > 0 {
			served[o.Method+" "+o.Path] = o.Query
		}
	}
	var withParameters []string
	for path, item := range spec.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			var written []string
			for _, p := range queryParametersOf(item, operation) {
				written = append(written, p.Name)
			}
			name := method + " " + path
			if len(written) > 0 {
				withParameters = append(withParameters, name)
			}
			if !slices.Equal(slices.Sorted(slices.Values(served[name])), slices.Sorted(slices.Values(written))) {
				t.Errorf("%s takes %v; openapi.yaml has %v", name, served[name], written)
			}
		}
	}
	slices.Sort(withParameters)
	if known := slices.Sorted(maps.Keys(served)); !slices.Equal(known, withParameters) {
		t.Errorf("not in openapi.yaml: %v", without(known, withParameters))
	}
}

// An id that is not listed would reach the domain as 0.
func TestEveryIntegerInAPathIsChecked(t *testing.T) {
	for _, o := range handlers.Operations() {
		item := spec.doc.Paths.Value(o.Path)
		var want []string
		for _, p := range slices.Concat(item.Parameters, item.GetOperation(o.Method).Parameters) {
			if p.Value.In == openapi3.ParameterInPath && p.Value.Schema.Value.Type.Is("integer") {
				want = append(want, p.Value.Name)
			}
		}
		if !slices.Equal(slices.Sorted(slices.Values(o.PathIDs)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s %s checks %v; openapi.yaml has the integers %v", o.Method, o.Path, o.PathIDs, want)
		}
	}
}

func TestAnUnknownQueryParameterIsRefused(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	before := f.storeContent()
	for _, operation := range operations() {
		method, path, _ := strings.Cut(operation, " ")
		if !strings.HasPrefix(path, "/api/") && path != "/join" {
			continue // of the node itself: see below
		}
		path = pathParameter.ReplaceAllString(path, "1")
		for _, name := range []string{"externalId", "Limit", "limit[]", "access_token"} {
			resp := f.expectError(400, "invalid_request", method, path+"?"+url.QueryEscape(name)+"=1", ann.token, "")
			if field := resp.text("errors.0.field"); field != name {
				t.Errorf("%s names %s", operation, resp.raw)
			}
		}
	}
	if changed := before.changes(f.storeContent()); changed != "" {
		t.Errorf("a refused request has changed the store: %s", changed)
	}
}

func TestProbesMayHaveParametersOfTheirOwn(t *testing.T) {
	f := newFixture(t)
	for _, path := range []string{"/healthz", "/balancez", "/readyz", "/openapi.yaml"} {
		f.expect(200, "GET", path+"?now=1", "", "")
	}
}
