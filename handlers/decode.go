package handlers

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/apierror"
)

// bodyLimit is the largest body of a request, in bytes.
const bodyLimit = 64 << 10

// strict reads a body to the letter. Names are case-sensitive, duplicates and invalid UTF-8 are refused by default.
var strict = json.RejectUnknownMembers(true)

// decode reads the body into in. Where every member is optional (optional), no body at all means {}.
func (c *call) decode(in any, optional bool) error {
	if c.Request.ContentLength > bodyLimit {
		return &http.MaxBytesError{Limit: bodyLimit}
	}
	buffer := takeBuffer()
	defer giveBuffer(buffer)
	if _, err := buffer.ReadFrom(http.MaxBytesReader(c.Writer, c.Request.Body, bodyLimit)); err != nil {
		return unread(err)
	}
	if buffer.Len() == 0 {
		if optional {
			return nil
		}
		return apierror.InvalidJSON.WithReason("a JSON object is needed as the body")
	}
	if !isJSON(c.Request.Header.Get("Content-Type")) {
		return apierror.UnsupportedMediaType
	}
	if err := json.Unmarshal(buffer.Bytes(), in, strict); err != nil {
		return decodingFault(err)
	}
	if firstByte(buffer.Bytes()) != '{' { // null would decode into any struct
		return apierror.InvalidRequest.WithField("body", "type", "must be an object")
	}
	return nil
}

// unread explains a body that did not arrive: too large, or cut off by the client.
func unread(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return apierror.InvalidJSON.WithReason("the body ended before it was complete")
}

func firstByte(text []byte) byte {
	for _, b := range text {
		if b != ' ' && b != '\t' && b != '\n' && b != '\r' {
			return b
		}
	}
	return 0
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json" && (params["charset"] == "" || strings.EqualFold(params["charset"], "utf-8"))
}

type syntaxError = jsontext.SyntacticError

func syntaxFault(err *syntaxError) error {
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return apierror.InvalidRequest.WithField(fieldPath(err.JSONPointer), "duplicate", "is there more than once")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return apierror.InvalidJSON.WithReason("the body ends before the JSON does")
	case err.JSONPointer == "":
		return apierror.InvalidJSON.WithReason("%s at byte %d", err.Err, err.ByteOffset)
	default:
		return apierror.InvalidJSON.WithField(fieldPath(err.JSONPointer), "syntax", err.Err.Error()+" at byte "+strconv.FormatInt(err.ByteOffset, 10))
	}
}

// mismatch says why a well-formed JSON value does not fit its place.
func mismatch(err *json.SemanticError) (code, message string) {
	switch {
	case errors.Is(err.Err, json.ErrUnknownName):
		return "unknown", "is not a member of this request"
	case errors.Is(err.Err, strconv.ErrRange):
		return "range", "is too large a number"
	case err.GoType == nil:
		return "type", "has the wrong type"
	}
	of := err.GoType
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of.Kind() {
	case reflect.String:
		return "type", "must be a string"
	case reflect.Bool:
		return "type", "must be true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "type", "must be an integer"
	case reflect.Float32, reflect.Float64:
		return "type", "must be a number"
	case reflect.Slice, reflect.Array:
		return "type", "must be an array"
	case reflect.Struct, reflect.Map:
		return "type", "must be an object"
	default:
		return "type", "has the wrong type"
	}
}

// fieldPath writes a JSON pointer the way the code of a client would: /results/0/place is results[0].place.
func fieldPath(p jsontext.Pointer) string {
	if p == "" {
		return "body"
	}
	var b strings.Builder
	for token := range p.Tokens() {
		if _, err := strconv.ParseUint(token, 10, 16); err == nil {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	return clipped(b.String())
}

// clipped keeps a name that the caller made up from filling the answer.
func clipped(name string) string {
	const longest = 128
	if len(name) > longest {
		return strings.ToValidUTF8(name[:longest], "") + "…"
	}
	return name
}

// query reads the query parameters of one request. It collects every fault; unknown parameters are ignored, so that a cache
// or a browser extension may add its own.
type query struct {
	values url.Values
	faults *apierror.Error
}

func (c *call) query() *query {
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.refuse("query", "format", "is not escaped well")
	}
	return q
}

func (q *query) refuse(name, code, message string) {
	if q.faults == nil {
		q.faults = apierror.InvalidRequest
	}
	q.faults = q.faults.WithField(name, code, message)
}

// err is what was wrong with any parameter that was asked for, or nil.
func (q *query) err() error {
	if q.faults == nil {
		return nil
	}
	return q.faults
}

// text is a parameter that may be given once, or "".
func (q *query) text(name string) string {
	given := q.values[name]
	if len(given) > 1 {
		q.refuse(name, "duplicate", "is there more than once")
	}
	if len(given) == 0 {
		return ""
	}
	return given[0]
}

// id is a positive integer, or 0 where it is not given.
func (q *query) id(name string) int64 {
	text := q.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		q.refuse(name, "type", "must be a positive integer")
	}
	return n
}

// flag is true or false, or nil where it is not given.
func (q *query) flag(name string) *bool {
	switch q.text(name) {
	case "":
		return nil
	case "true":
		return new(true)
	case "false":
		return new(false)
	default:
		q.refuse(name, "type", "must be true or false")
		return nil
	}
}

// The sizes of a page of a list.
const (
	defaultLimit = 20
	largestLimit = 100
)

// limit is the size of the page that is asked for.
func (q *query) limit() int {
	text := q.text("limit")
	if text == "" {
		return defaultLimit
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > largestLimit {
		q.refuse("limit", "range", "must be an integer from 1 to "+strconv.Itoa(largestLimit))
		return defaultLimit
	}
	return n
}

// after is a cursor of a list that is ordered by id: the last id that the caller has seen.
func (q *query) after() int64 {
	text := q.text("cursor")
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		q.refuse("cursor", "format", "is not a cursor that this list gave")
	}
	return n
}

// pathID is the integer in the path; what is no integer names nothing, so it is absent.
func (c *call) pathID(name string, absent *apierror.Error) (int64, error) {
	n, err := strconv.ParseInt(c.Param(name), 10, 64)
	if err != nil || n < 1 {
		return 0, absent
	}
	return n, nil
}

// nullable is a member of a PATCH for which null and absence differ.
type nullable[T any] struct {
	Given bool
	Value *T
}

// UnmarshalJSONFrom is called only where the member is there.
func (n *nullable[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	n.Given = true
	return json.UnmarshalDecode(d, &n.Value)
}

// MarshalJSONTo writes the value; an absent one is left out by omitzero.
func (n nullable[T]) MarshalJSONTo(e *jsontext.Encoder) error { return json.MarshalEncode(e, n.Value) }

// change is the form in which domains take it: nil leaves the value as it is, the address of nil takes it away.
func (n nullable[T]) change() **T {
	if !n.Given {
		return nil
	}
	return &n.Value
}
