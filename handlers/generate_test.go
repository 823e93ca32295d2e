package handlers_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/tests/testkit"
)

// socketOnly are the errors that only messages on a WebSocket get; asyncapi.yaml describes them.
var socketOnly = []*apierror.Error{
	apierror.SaveVersionNotFound, apierror.CallNotFound,
}

// withoutOperation are the errors of requests that no operation matches. One that /balancez
// returns as well, not_found, is not listed.
var withoutOperation = []*apierror.Error{apierror.MethodNotAllowed}

// `make generate` runs this test with -update, which writes the files.
func TestGeneratedFilesAreFresh(t *testing.T) {
	for name, generate := range map[string]func(current []byte) ([]byte, error){
		"openapi.yaml":      withErrorResponses,
		"../docs/errors.md": func([]byte) ([]byte, error) { return errorReference(), nil },
	} {
		current, err := os.ReadFile(name)
		if err != nil && !*update {
			t.Fatal(err)
		}
		want := testkit.Must(generate(current))(t, "%s", name)
		if *update {
			testkit.Check(t, os.WriteFile(name, want, 0o644))
		} else if !bytes.Equal(current, want) {
			t.Errorf("%s is stale; run `make generate`", name)
		}
	}
}

func TestEveryErrorCodeHasAPlace(t *testing.T) {
	place := map[string]string{}
	for _, operation := range handlers.Operations() {
		for _, e := range operation.Errors {
			place[e.Code] = "an operation"
		}
	}
	for name, list := range map[string][]*apierror.Error{"socketOnly": socketOnly, "withoutOperation": withoutOperation} {
		for _, e := range list {
			if other := place[e.Code]; other != "" {
				t.Errorf("%s is in %s and in %s", e.Code, other, name)
			}
			place[e.Code] = name
		}
	}
	if listed := slices.Sorted(maps.Keys(place)); !slices.Equal(listed, apierror.Codes()) {
		t.Errorf("without a place: %v; not an error code: %v", without(apierror.Codes(), listed),
			without(listed, apierror.Codes()))
	}
	for _, code := range apierror.Codes() {
		if apierror.Advice(code) == "" {
			t.Errorf("%s has no advice", code)
		}
	}
}

// The responses with several codes that openapi.yaml names, by "status code,code".
var namedErrorResponses = map[string]string{
	"400 invalid_json,invalid_request":                          "InvalidBody",
	"400 idempotency_key_required,invalid_json,invalid_request": "InvalidKeyedBody",
	"401 token_expired,unauthenticated":                         "InvalidCredential",
	"503 outcome_unknown,store_full,store_unavailable":          "TryAgain",
	"503 store_full,store_unavailable":                          "StoreFullOrUnavailable",
	"403 account_suspended,forbidden":                           "ForbiddenOrSuspended",
}

// errorResponse is the errors of one status of an operation.
type errorResponse struct {
	status   int
	codes    []string
	onSocket bool // of an operation that opens a WebSocket: a 429 may mean too many connections
}

// name returns the name under which openapi.yaml has the response once, or "".
func (r errorResponse) name() string {
	if len(r.codes) > 1 {
		return namedErrorResponses[fmt.Sprint(r.status, " ", strings.Join(r.codes, ","))]
	}
	if r.status == 429 && r.onSocket {
		return "TooManySockets"
	}
	var name strings.Builder
	for word := range strings.SplitSeq(r.codes[0], "_") {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

// errorCodesExtension is the member of a response that lists its error codes. They are no schema of
// their own: a generator would make a type of each.
const errorCodesExtension = "x-error-codes"

// write appends the response object, with its lines indented.
func (r errorResponse) write(b *bytes.Buffer, indent string) {
	headers := "X-Request-Id: {$ref: '#/components/headers/RequestId'}"
	switch {
	case r.status == 401:
		headers += ", WWW-Authenticate: {$ref: '#/components/headers/Challenge'}"
	case r.status == 429 && r.onSocket:
		headers += ", Retry-After: {$ref: '#/components/headers/RetryAfter'}"
	case r.status == 429:
		headers += ", Retry-After: {$ref: '#/components/headers/RetryAfter'}, RateLimit: {$ref: " +
			"'#/components/headers/RateLimit'}, " +
			"RateLimit-Policy: {$ref: '#/components/headers/RateLimitPolicy'}"
	case slices.Contains(r.codes, "draining"):
		headers += ", Retry-After: {description: Seconds until another try makes sense, schema: {type: integer, minimum: 1}}"
	}
	codes := strings.Join(r.codes, ", ")
	for _, line := range []string{
		"description: '" + codes + "'",
		errorCodesExtension + ": [" + codes + "]",
		"headers: {" + headers + "}",
		"content: {application/problem+json: {schema: {$ref: '#/components/schemas/Problem'}}}",
	} {
		b.WriteString(indent + line + "\n")
	}
}

// errorResponses groups errors, which are ordered by status and code, by status.
func errorResponses(list []*apierror.Error) []errorResponse {
	var responses []errorResponse
	onSocket := slices.Contains(list, apierror.RateLimited) && slices.Contains(list, apierror.Draining)
	for _, e := range list {
		if n := len(responses); n == 0 || responses[n-1].status != e.Status {
			responses = append(responses, errorResponse{status: e.Status, onSocket: onSocket})
		}
		last := &responses[len(responses)-1]
		last.codes = append(last.codes, e.Code)
	}
	return responses
}

const generatedMark = "    # Errors, generated from handlers/routes.go by `make generate`.\n"

var (
	pathLine   = regexp.MustCompile(`^  (/\S*):$`)
	methodLine = regexp.MustCompile(`^    (get|post|put|patch|delete):$`)
	errorLine  = regexp.MustCompile(`^        ('[45][0-9]{2}'|default):`)
)

// withErrorResponses returns openapi.yaml with the error responses that routes.go demands in place
// of those it has. Everything else stays as it is.
func withErrorResponses(openAPI []byte) ([]byte, error) {
	errors := map[string][]*apierror.Error{}
	for _, operation := range handlers.Operations() {
		errors[operation.Method+" "+operation.Path] = operation.Errors
	}
	paths, components, found := bytes.Cut(openAPI, []byte(generatedMark))
	_, schemas, complete := bytes.Cut(components, []byte("\n  schemas:\n"))
	if !found || !complete {
		return nil, fmt.Errorf("there is no line %q before the schemas", strings.TrimSpace(generatedMark))
	}
	var out bytes.Buffer
	named := map[string]errorResponse{}
	path, operation, skip, pending := "", "", false, false
	flush := func() {
		if !pending {
			return
		}
		pending = false
		responses := errorResponses(errors[operation])
		if responses[0].status >= 500 {
			out.WriteString("        '431': {$ref: '#/components/responses/HeadersTooLarge'}\n")
		}
		for _, response := range responses {
			if name := response.name(); name != "" {
				named[name] = response
				fmt.Fprintf(&out, "        '%d': {$ref: '#/components/responses/%s'}\n", response.status, name)
				continue
			}
			fmt.Fprintf(&out, "        '%d':\n", response.status)
			response.write(&out, "          ")
		}
		delete(errors, operation)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(paths), "\n"), "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if pending && indent < 8 { // the responses of the operation end here
			flush()
			skip = false
		}
		if m := pathLine.FindStringSubmatch(line); m != nil {
			path = m[1]
		}
		if m := methodLine.FindStringSubmatch(line); m != nil {
			operation = strings.ToUpper(m[1]) + " " + path
		}
		if pending && indent == 8 {
			skip = errorLine.MatchString(line)
		}
		if !skip {
			out.WriteString(line + "\n")
		}
		pending = pending || line == "      responses:"
	}
	if len(errors) > 0 {
		return nil, fmt.Errorf("operations without responses: %v", slices.Sorted(maps.Keys(errors)))
	}
	out.WriteString(generatedMark)
	for _, name := range slices.SortedFunc(maps.Keys(named), func(a, b string) int {
		return cmp.Or(cmp.Compare(named[a].status, named[b].status), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&out, "    %s:\n", name)
		named[name].write(&out, "      ")
	}
	out.WriteString("\n  schemas:\n")
	out.Write(schemas)
	return out.Bytes(), nil
}

const errorReferenceHead = "<!-- generated from internal/base/apierror by `make generate`; do not edit -->\n" +
	"# Errors\n\n" +
	"An error response is `application/problem+json` (RFC 9457). The client decides by `code`; `title` and `detail`\n" +
	"are for people and may change. A code is never renamed and never gets another meaning. There will be more codes:\n" +
	"treat an unknown one by its status.\n\n" +
	"An error with a status below 500 changed nothing. `errors` lists every field that is not valid. `requestId` finds\n" +
	"the request in the log. `retryable` is true when the same request may succeed later; send it with the same\n" +
	"Idempotency-Key.\n\n" +
	"`/openapi.yaml` lists the codes of every operation by status. On a WebSocket the same body is the `error` of a\n" +
	"reply.\n\n" +
	"| code | status | title | retryable | what the caller should do |\n|---|---|---|---|---|\n"

// errorReference returns docs/errors.md.
func errorReference() []byte {
	var list []*apierror.Error
	for _, code := range apierror.Codes() {
		e, _ := apierror.Lookup(code)
		list = append(list, e)
	}
	slices.SortStableFunc(list, func(a, b *apierror.Error) int { return cmp.Compare(a.Status, b.Status) })
	var b bytes.Buffer
	b.WriteString(errorReferenceHead)
	for _, e := range list {
		retryable := "no"
		if e.Retryable {
			retryable = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", e.Code, strconv.Itoa(e.Status), e.Title, retryable,
			apierror.Advice(e.Code))
	}
	return b.Bytes()
}
