package handlers_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/tests/testkit"
)

// The tests of this file send values at and beyond every bound that openapi.yaml has. They know how
// to make a valid request of each operation, and nothing else.

// passedTime is a time that no member with x-future may have.
const passedTime = "2020-01-01T00:00:00Z"

// badValue is a value for a member or a parameter. Whether it is valid is for the schema to say.
type badValue struct {
	path  []any // names of members and indexes of items
	value any
}

// String returns the value as the error of it names the member: results[0].place.
func (b badValue) String() string {
	text, err := wire.Marshal(b.value)
	if err != nil {
		panic(err)
	}
	if len(text) > 60 {
		text = append(text[:60], "…"...)
	}
	return b.field() + "=" + string(text)
}

func (b badValue) field() string {
	var name strings.Builder
	for _, step := range b.path {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&name, "[%d]", step)
		default:
			if name.Len() > 0 {
				name.WriteByte('.')
			}
			fmt.Fprint(&name, step)
		}
	}
	return name.String()
}

// in returns a copy of a body with the value in its place.
func (b badValue) in(body any) any { return replaceAt(body, b.path, b.value) }

func replaceAt(in any, path []any, value any) any {
	if len(path) == 0 {
		return value
	}
	switch step := path[0].(type) {
	case string:
		object, _ := in.(map[string]any)
		object = maps.Clone(object)
		if object == nil {
			object = map[string]any{}
		}
		object[step] = replaceAt(object[step], path[1:], value)
		return object
	default:
		list, _ := in.([]any)
		list = slices.Clone(list)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = replaceAt(list[0], path[1:], value)
		return list
	}
}

// object returns the member of the body that the value is in, or is: members within an object may
// exclude or need each other, and then the error may name the other one.
func (b badValue) object() string { return badValue{path: b.path[:1]}.field() }

// alternatives returns a schema and all that it consists of.
func alternatives(ref *openapi3.SchemaRef) (list []*openapi3.Schema) {
	if ref == nil || ref.Value == nil {
		return nil
	}
	list = append(list, ref.Value)
	for _, part := range slices.Concat(ref.Value.AllOf, ref.Value.OneOf, ref.Value.AnyOf) {
		list = append(list, alternatives(part)...)
	}
	return list
}

// badValues returns the values at and beyond each bound of a schema, at a path, and of what is
// within it.
func badValues(ref *openapi3.SchemaRef, path []any) (list []badValue) {
	add := func(values ...any) {
		for _, v := range values {
			list = append(list, badValue{path, v})
		}
	}
	if len(path) > 0 {
		add(-1.0, 0.0, 1.5, 1e20, "", "no such word", passedTime, true, nil, map[string]any{}, []any{}, []any{[]any{}})
	}
	for _, s := range alternatives(ref) {
		if s.Min != nil {
			add(*s.Min - 1)
		}
		if s.Max != nil {
			add(*s.Max + 1)
		}
		if s.MaxLength != nil {
			add(strings.Repeat("x", int(*s.MaxLength)+1))
		}
		if s.MinLength > 1 {
			add(strings.Repeat("x", int(s.MinLength)-1))
		}
		if s.MaxItems != nil {
			add(slices.Repeat([]any{"x"}, int(*s.MaxItems)+1), slices.Repeat([]any{map[string]any{}}, int(*s.MaxItems)+1))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			list = append(list, badValues(s.Properties[name], append(slices.Clip(path), name))...)
		}
		if s.Items != nil {
			list = append(list, badValues(s.Items, append(slices.Clip(path), 0))...)
		}
	}
	return list
}

// schemaAt returns the schemas of a place within a schema.
func schemaAt(ref *openapi3.SchemaRef, path []any) (list []*openapi3.Schema) {
	list = alternatives(ref)
	for _, step := range path {
		var next []*openapi3.Schema
		for _, s := range list {
			if name, ok := step.(string); ok {
				next = append(next, alternatives(s.Properties[name])...)
			} else {
				next = append(next, alternatives(s.Items)...)
			}
		}
		list = next
	}
	return list
}

// isForbidden reports whether openapi.yaml forbids a body, or that one of its times has passed.
func isForbidden(schema *openapi3.SchemaRef, b badValue, body any) bool {
	mustBeFuture := func(s *openapi3.Schema) bool { return s.Extensions["x-future"] == true }
	if b.value == passedTime && slices.ContainsFunc(schemaAt(schema, b.path), mustBeFuture) {
		return true
	}
	return schema.Value.VisitJSON(body, openapi3.EnableFormatValidation()) != nil
}

// expectBounded requires that a forbidden value is refused by the name of its member, and that no
// value is an unexpected error.
func expectBounded(t *testing.T, resp *httpResult, b badValue, forbidden bool) {
	t.Helper()
	switch {
	case !forbidden && resp.code() == apierror.NoServer.Code: // a call that can be made, of a server that is not there
	case resp.status >= 500:
		t.Errorf("%s returns %d %s", b, resp.status, resp.raw)
	case !forbidden:
	case resp.status == 404 && strings.HasSuffix(resp.code(), "_not_found"): // the code names what is not there
	case resp.status == 403: // of a member that the caller must not send at all
	case resp.status != 400 && resp.status != 422:
		t.Errorf("%s returns %d %s, want 400", b, resp.status, resp.raw)
	case !namesField(resp, b.object()):
		t.Errorf("%s: the error names another member: %s", b, resp.raw)
	}
}

// namesField reports whether an error is about a member, what it is in, or what is in it.
func namesField(resp *httpResult, field string) bool {
	body, _ := resp.body.(map[string]any)
	errors, _ := body["errors"].([]any)
	return slices.ContainsFunc(errors, func(e any) bool {
		named, _ := memberOf(e.(map[string]any), "field").(string)
		return strings.HasPrefix(named, field) || strings.HasPrefix(field, named)
	})
}

func TestEveryBoundOfABodyIsKept(t *testing.T) {
	for _, v := range validBodies {
		t.Run(v.operation, func(t *testing.T) {
			t.Parallel()
			f, ann, fill := newRoomFixtureFor(t, v.operation)
			bearer := map[string]string{"ann": ann.token, "server": f.serverKey, "operator": adminKey}[v.as]
			method, path, _ := strings.Cut(fill.Replace(v.operation), " ")
			var valid any
			testkit.Check(t, wire.Unmarshal([]byte(fill.Replace(v.body)), &valid))
			schema, keyRequired := bodyOf(t, method, path)
			sent := 0
			send := func(b badValue, forbidden bool, body any) {
				t.Helper()
				text := testkit.Must(wire.Marshal(body))(t)
				sent++
				var key []string // a 404 is stored under a key
				if keyRequired {
					key = []string{"Idempotency-Key", fmt.Sprintf("bound-%d", sent)}
				}
				resp := f.send(method, path, bearer, string(text), key...)
				expectBounded(t, resp, b, forbidden)
			}
			var forbidden, allowed []badValue
			for _, b := range badValues(schema, nil) {
				switch body := b.in(valid); {
				case !isForbidden(schema, b, body):
					allowed = append(allowed, b)
				case b.value != nil: // null counts as absent
					forbidden = append(forbidden, b)
				}
			}
			f.expect(201, "POST", "/api/v1/auth/guest", "", // makes the pepper, which a request may need before it is refused
				fmt.Sprintf(`{"gameId":%d,"deviceSecret":"the device that came here before"}`, f.game))
			before := f.storeContent()
			for _, b := range forbidden {
				send(b, true, b.in(valid))
			}
			if changed := before.changes(f.storeContent()); changed != "" {
				t.Errorf("a refused request has changed the store: %s", changed)
			}
			resp := f.send(method, path, bearer, fill.Replace(v.body), "Idempotency-Key", "valid")
			if resp.status == 400 && schema != nil {
				t.Errorf("the base is not valid: %s", resp.raw)
			}
			for _, b := range allowed { // they may change what the others would need
				send(b, false, b.in(valid))
			}
		})
	}
}

// bodyOf returns the schema of an operation's body, nil for none, and whether the operation needs
// an Idempotency-Key.
func bodyOf(t *testing.T, method, path string) (schema *openapi3.SchemaRef, keyRequired bool) {
	t.Helper()
	request := testkit.Must(http.NewRequestWithContext(t.Context(), method, "http://node"+path, nil))(t)
	found, _ := testkit.Must2(spec.router.FindRoute(request))(t)
	key := found.Operation.Parameters.GetByInAndName(openapi3.ParameterInHeader, "Idempotency-Key")
	if body := found.Operation.RequestBody; body != nil {
		schema = body.Value.Content.Get("application/json").Schema
	}
	return schema, key != nil && key.Required
}

// badParameters are values that no parameter of a type may have, by the type; the others are at
// most an unexpected error.
func badParameters(s *openapi3.Schema) (forbidden, others []string) {
	forbidden = []string{""}
	others = []string{"-1", "0", "1.5", "99999999999999999999", "no such word", passedTime, strings.Repeat("x", 300)}
	isNumber := s.Type.Is(openapi3.TypeInteger) || s.Type.Is(openapi3.TypeNumber)
	switch {
	case s.Type.Is(openapi3.TypeInteger):
		forbidden = append(forbidden, "1.5", "99999999999999999999", "no such word")
	case s.Type.Is(openapi3.TypeBoolean), len(s.Enum) > 0:
		forbidden = append(forbidden, "-1", "no such word")
	case s.Format == "date-time":
		forbidden = append(forbidden, "-1", "no such word")
	}
	if isNumber && s.Min != nil {
		forbidden = append(forbidden, strconv.FormatFloat(*s.Min-1, 'f', -1, 64), "-1")
	}
	if isNumber && s.Max != nil {
		forbidden = append(forbidden, strconv.FormatFloat(*s.Max+1, 'f', -1, 64))
	}
	if s.MaxLength != nil {
		forbidden = append(forbidden, strings.Repeat("x", int(*s.MaxLength)+1))
	}
	return forbidden, others
}

func TestEveryBoundOfAQueryParameterIsKept(t *testing.T) {
	f, ann, fill := newRoomFixtureFor(t, "/tournaments")
	before := f.storeContent()
	seen := map[string]bool{}
	for path, item := range spec.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for _, p := range queryParametersOf(item, operation) {
				name := method + " " + path
				base, known := queryBases[name]
				if seen[name] = true; !known {
					t.Errorf("%s has no request in queryBases", name)
					continue
				}
				bearer := map[string]string{"ann": ann.token, "server": f.serverKey, "operator": adminKey}[base.as]
				address, query, _ := strings.Cut(fill.Replace(base.path), "?")
				send := func(value string) *httpResult {
					values := testkit.Must(url.ParseQuery(query))(t)
					values.Set(p.Name, value)
					return f.send(method, address+"?"+values.Encode(), bearer, fill.Replace(base.body))
				}
				forbidden, others := badParameters(p.Schema.Value)
				for _, value := range forbidden {
					if value == "" && p.AllowEmptyValue {
						continue
					}
					resp := send(value)
					isNotFound := resp.status == 404 && strings.HasSuffix(resp.code(), "_not_found")
					if resp.status != 400 && !isNotFound || resp.status == 400 && !namesField(resp, p.Name) {
						t.Errorf("%s with %s=%.40q returns %d %s", name, p.Name, value, resp.status, resp.raw)
					}
				}
				for _, value := range others {
					if resp := send(value); resp.status >= 500 || method != "GET" && resp.status < 300 {
						t.Errorf("%s with %s=%.40q returns %d %s", name, p.Name, value, resp.status, resp.raw)
					}
				}
			}
		}
	}
	for name := range queryBases {
		if !seen[name] {
			t.Errorf("%s has no query parameters", name)
		}
	}
	if changed := before.changes(f.storeContent()); changed != "" {
		t.Errorf("a request has changed the store: %s", changed)
	}
}

// queryBases has a valid request of every operation with query parameters, and who sends it.
var queryBases = func() map[string]queryBase {
	const (
		list  = "/api/v1/game-session/list"
		board = "/api/v1/leaderboards/{board}"
		tour  = "/api/v1/tournaments/{tournamentId}"
		entry = "/api/v1/admin/games/{gameId}/leaderboards/{board}/entries/{userId}"
	)
	fill := strings.NewReplacer("{board}", "top", "{tournamentId}", "<tour>", "{gameId}", "<game>", "{userId}", "<ann>",
		"{roomId}", "<room>", "{webhookId}", "<webhook>")
	bases := map[string]queryBase{}
	for operation, as := range map[string]string{
		"GET /api/v1/me/limits": "ann", "GET /api/v1/friends": "ann", "GET /api/v1/game-session/get": "server",
		"GET " + list: "ann", "GET /api/v1/user-balance/ledger": "ann", "GET /api/v1/user-assets": "ann",
		"GET /api/v1/game-assets": "ann", "GET /api/v1/leaderboards": "ann", "GET " + board: "ann",
		"GET /api/v1/admin/games/{gameId}/webhooks/{webhookId}/deliveries": "server",
		"GET " + board + "/entries":                                        "ann", "GET " + board + "/entries/around": "ann",
		"GET " + board + "/entries/friends": "ann", "GET " + board + "/entries/{userId}": "ann",
		"GET " + board + "/league": "ann", "GET " + board + "/seasons": "ann",
		"GET /api/v1/admin/games/{gameId}/leaderboards": "operator",
		"GET /api/v1/tournaments":                       "ann", "GET " + tour: "ann", "GET " + tour + "/entrants": "ann",
		"GET " + tour + "/matches": "ann", "GET " + tour + "/standings": "ann",
		"GET /api/v1/admin/games": "operator", "GET /api/v1/admin/games/{gameId}/assets": "operator",
		"GET /api/v1/admin/users": "operator", "GET /api/v1/admin/users/{userId}/ledger": "operator",
		"GET /api/v1/admin/users/{userId}/limits": "operator", "GET /api/v1/admin/rooms": "operator",
		"GET /api/v1/admin/rooms/{roomId}/events": "operator", "GET /api/v1/admin/games/{gameId}/ledger": "operator",
		"GET /api/v1/admin/trail": "operator", "GET /api/v1/admin/audit": "operator",
		"GET /api/v1/game-data/save": "ann", "GET /api/v1/game-data/load": "ann", "GET /api/v1/realtime": "ann",
	} {
		_, path, _ := strings.Cut(operation, " ")
		bases[operation] = queryBase{as: as, path: fill.Replace(path)}
	}
	bases["POST "+board+"/scores"] = queryBase{"operator", fill.Replace(board) + "/scores", `{"userId":0,"score":1}`}
	bases["POST "+board+"/scores/batch"] = queryBase{"operator", fill.Replace(board) + "/scores/batch", `{"scores":[]}`}
	for _, verb := range []string{"/hide", "/unhide", "/remove"} {
		bases["POST "+entry+verb] = queryBase{"server", fill.Replace(entry) + verb, `{"reason":"x"}`}
	}
	return bases
}()

type queryBase struct{ as, path, body string }
