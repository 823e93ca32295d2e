package handlers_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// Every request and response of these tests is checked against openapi.yaml. When all tests ran,
// every operation must have succeeded once and failed once.
func TestMain(m *testing.M) {
	flag.Parse()
	code := redistest.Main(m)
	if only := flag.Lookup("test.run").Value.String(); code == 0 && (only == "" || only == ".") &&
		flag.Lookup("test.list").Value.String() == "" {
		if missing := spec.unexercised(); len(missing) > 0 {
			fmt.Println("some operations are not fully exercised:\n" + strings.Join(missing, "\n"))
			code = 1
		}
	}
	os.Exit(code)
}

// contractChecker checks exchanges against openapi.yaml and records which operations it saw.
type contractChecker struct {
	doc    *openapi3.T
	router routers.Router
	mu     sync.Mutex
	seen   map[string][2]bool // operation id → succeeded, failed
}

var spec = readContract()

func readContract() *contractChecker {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(handlers.OpenAPI())
	if err != nil {
		panic("openapi.yaml: " + err.Error())
	}
	if err := doc.Validate(loader.Context, openapi3.EnableExamplesValidation()); err != nil {
		panic("openapi.yaml: " + err.Error())
	}
	// Clients must expect further members. The tests must not, so that each member is documented.
	for _, s := range doc.Components.Schemas {
		closeSchema(s, map[*openapi3.Schema]bool{})
	}
	for _, r := range doc.Components.Responses {
		closeContent(r.Value.Content)
	}
	for _, path := range doc.Paths.Map() {
		for _, operation := range path.Operations() {
			for _, r := range operation.Responses.Map() {
				closeContent(r.Value.Content)
			}
		}
	}
	doc.Servers = nil // the tests' servers have other addresses each time
	router, err := legacy.NewRouter(doc)
	if err != nil {
		panic("openapi.yaml: " + err.Error())
	}
	return &contractChecker{doc: doc, router: router, seen: map[string][2]bool{}}
}

func closeContent(content openapi3.Content) {
	for _, media := range content {
		closeSchema(media.Schema, map[*openapi3.Schema]bool{})
	}
}

func closeSchema(ref *openapi3.SchemaRef, done map[*openapi3.Schema]bool) {
	if ref == nil || ref.Value == nil || done[ref.Value] {
		return
	}
	s := ref.Value
	done[s] = true
	if len(s.Properties) > 0 && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
		s.AdditionalProperties.Has = new(false)
	}
	for _, p := range s.Properties {
		closeSchema(p, done)
	}
	closeSchema(s.Items, done)
}

// check checks one exchange. An error code that the operation does not list fails the test.
func (c *contractChecker) check(t testing.TB, r *http.Request, sent []byte, resp *httpResult) {
	t.Helper()
	found, params, err := c.router.FindRoute(r)
	if err != nil || strings.HasSuffix(r.URL.Path, "/") { // the router of the checker ignores a final slash
		if resp.status != http.StatusNotFound && resp.status != http.StatusMethodNotAllowed &&
			r.Method != http.MethodOptions {
			t.Errorf("%s %s is not in openapi.yaml and returned %d", r.Method, r.URL.Path, resp.status)
		}
		return
	}
	c.record(found.Operation.OperationID, resp.status)
	options := &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, SkipSettingDefaults: true,
		SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.DisableSchemaErrorDetails()},
	}
	copied := r.Clone(t.Context())
	copied.Body = io.NopCloser(bytes.NewReader(sent))
	if len(sent) == 0 {
		copied.Body = http.NoBody
	}
	requestInput := &openapi3filter.RequestValidationInput{
		Request: copied, PathParams: params, Route: found,
		Options: options,
	}
	if err := openapi3filter.ValidateRequest(t.Context(), requestInput); err != nil && resp.status < 300 {
		t.Errorf("%s %s returned %d to a request that is not valid by openapi.yaml: %v", r.Method, r.URL.Path, resp.status,
			err)
	}
	responseInput := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: requestInput, Status: resp.status,
		Header: resp.header, Options: options,
	}
	responseInput.SetBodyBytes(resp.raw)
	if err := openapi3filter.ValidateResponse(t.Context(), responseInput); err != nil {
		t.Errorf("%s %s returned a response that is not valid by openapi.yaml: %v\n%d %s", r.Method, r.URL.Path, err,
			resp.status, resp.raw)
	}
	if resp.status >= 400 {
		response := found.Operation.Responses.Status(resp.status)
		if listed, _ := response.Value.Extensions[errorCodesExtension].([]any); !slices.Contains(listed, any(resp.code())) {
			t.Errorf("%s %s returned %d %s; openapi.yaml has %v", r.Method, r.URL.Path, resp.status, resp.code(), listed)
		}
	}
}

func (c *contractChecker) record(operation string, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen[operation]
	seen[0] = seen[0] || status < 300
	seen[1] = seen[1] || status >= 400
	c.seen[operation] = seen
}

func (c *contractChecker) unexercised() []string {
	var missing []string
	for _, path := range slices.Sorted(maps.Keys(c.doc.Paths.Map())) {
		for method, operation := range c.doc.Paths.Value(path).Operations() {
			seen := c.seen[operation.OperationID]
			if !seen[0] {
				missing = append(missing, method+" "+path+" never succeeded")
			}
			if !seen[1] && !slices.Contains(neverFails, path) {
				missing = append(missing, method+" "+path+" never failed")
			}
		}
	}
	return missing
}

// neverFails are the paths of operations that always succeed.
var neverFails = []string{"/healthz", "/openapi.yaml", "/asyncapi.yaml"}

func TestOpenAPIDescribesEveryRoute(t *testing.T) {
	served := operations()
	var written []string
	for path, item := range spec.doc.Paths.Map() {
		for method := range item.Operations() {
			written = append(written, method+" "+path)
		}
	}
	slices.Sort(written)
	slices.Sort(served)
	if !slices.Equal(served, written) {
		t.Errorf("served and not in openapi.yaml: %v\nin openapi.yaml and not served: %v", without(served, written),
			without(written, served))
	}
}

// operations returns what is served, "GET /api/v1/me".
func operations() []string {
	var list []string
	for _, o := range handlers.Operations() {
		list = append(list, o.Method+" "+o.Path)
	}
	return list
}

func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

var update = flag.Bool("update", false, "write the golden and generated files")

// variableParts are the values that change from run to run, and what golden files have instead.
var variableParts = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`"accessToken": "[^"]+"`), `"accessToken": "<jwt>"`},
	{regexp.MustCompile(`"refreshToken": "[^"]+"`), `"refreshToken": "<secret>"`},
	{regexp.MustCompile(`"ticket": "[^"]+"`), `"ticket": "<secret>"`},
	{regexp.MustCompile(`"link": "[^"]+"`), `"link": "<secret>"`},
	{regexp.MustCompile(`#link=[^"]+"`), `#link=<secret>"`},
	{regexp.MustCompile(`"serverKey": "[^"]+"`), `"serverKey": "<secret>"`},
	{regexp.MustCompile(`"[0-9a-f]{16}"`), `"<key id>"`},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), `<uuid>`},
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]+Z`), `<time>`},
	{regexp.MustCompile(`"position": "([0-9]+)-[0-9a-z]{8}"`), `"position": "$1-<nonce>"`},
	{regexp.MustCompile(`"code": "[0-9A-Z]{4,10}"`), `"code": "<code>"`},
}

// golden compares a response, some headers and the body, with the file of that name.
func golden(t *testing.T, name string, resp *httpResult) {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d\n", resp.status)
	for _, header := range []string{
		"Content-Type", "Etag", "Cache-Control", "Idempotent-Replayed", "Parlor-Durability", "Www-Authenticate", "Allow",
		"X-Content-Type-Options",
		"Access-Control-Allow-Origin", "Vary",
	} {
		if value := resp.header.Get(header); value != "" {
			fmt.Fprintf(&b, "%s: %s\n", header, value)
		}
	}
	b.WriteByte('\n')
	b.Write(indentJSON(t, resp.raw))
	got := b.Bytes()
	for _, v := range variableParts {
		got = v.form.ReplaceAll(got, []byte(v.as))
	}
	file := "testdata/" + name + ".golden"
	if *update {
		testkit.Check(t, os.WriteFile(file, got, 0o644))
		return
	}
	want := testkit.Must(os.ReadFile(file))(t)
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; after a look, run with -update:\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

// indentJSON returns a JSON body with one member a line, in the order of the response.
func indentJSON(t *testing.T, raw []byte) []byte {
	t.Helper()
	if len(raw) == 0 || raw[0] != '{' {
		return raw
	}
	indented := jsontext.Value(bytes.Clone(raw))
	testkit.Check(t, indented.Indent(jsontext.WithIndent("  ")))
	return append(indented, '\n')
}
