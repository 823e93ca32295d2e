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

// maxBodyBytes is the largest body of a request, in bytes.
const maxBodyBytes = 64 << 10

// strictOptions reads a body to the letter. Names are case-sensitive, duplicates and invalid UTF-8 are refused by default.
var strictOptions = json.RejectUnknownMembers(true)

// decode reads the body into in. Where every member is optional (optional), no body at all means {}.
func (r *request) decode(in any, optional bool) error {
	if r.Request.ContentLength > maxBodyBytes {
		return &http.MaxBytesError{Limit: maxBodyBytes}
	}
	buffer := getBuffer()
	defer putBuffer(buffer)
	if _, err := buffer.ReadFrom(http.MaxBytesReader(r.Writer, r.Request.Body, maxBodyBytes)); err != nil {
		return fromReadError(err)
	}
	if buffer.Len() == 0 {
		if optional {
			return nil
		}
		return apierror.InvalidJSON.WithReason("a JSON object is needed as the body")
	}
	if !isJSON(r.Request.Header.Get("Content-Type")) {
		return apierror.UnsupportedMediaType
	}
	if err := json.Unmarshal(buffer.Bytes(), in, strictOptions); err != nil {
		return fromDecodeError(err)
	}
	if firstByte(buffer.Bytes()) != '{' { // null would decode into any struct
		return apierror.InvalidRequest.WithField("body", "type", "must be an object")
	}
	return nil
}

// fromReadError explains a body that did not arrive: too large, or cut off by the client.
func fromReadError(err error) error {
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

func fromSyntaxError(err *syntaxError) error {
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

// describeMismatch says why a well-formed JSON value does not fit its place.
func describeMismatch(err *json.SemanticError) (code, message string) {
	switch {
	case errors.Is(err.Err, json.ErrUnknownName):
		return "unknown", "is not a member of this request"
	case errors.Is(err.Err, strconv.ErrRange):
		return "range", "is too large a number"
	case err.GoType == nil:
		return "type", "has the wrong type"
	}
	goType := err.GoType
	for goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	switch goType.Kind() {
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
	return truncate(b.String())
}

// truncate keeps a name that the caller made up from filling the answer.
func truncate(name string) string {
	const maxBytes = 128
	if len(name) > maxBytes {
		return strings.ToValidUTF8(name[:maxBytes], "") + "…"
	}
	return name
}

// query reads the query parameters of one request. It collects every fault; unknown parameters are ignored, so that a cache
// or a browser extension may add its own.
type query struct {
	values url.Values
	errs   *apierror.Error
}

func (r *request) query() *query {
	values, err := url.ParseQuery(r.Request.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.addError("query", "format", "is not escaped well")
	}
	return q
}

func (q *query) addError(name, code, message string) {
	if q.errs == nil {
		q.errs = apierror.InvalidRequest
	}
	q.errs = q.errs.WithField(name, code, message)
}

// err is what was wrong with any parameter that was asked for, or nil.
func (q *query) err() error {
	if q.errs == nil {
		return nil
	}
	return q.errs
}

// text is a parameter that may be given once, or "".
func (q *query) text(name string) string {
	given := q.values[name]
	if len(given) > 1 {
		q.addError(name, "duplicate", "is there more than once")
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
		q.addError(name, "type", "must be a positive integer")
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
		q.addError(name, "type", "must be true or false")
		return nil
	}
}

// The sizes of a page of a list.
const (
	defaultLimit = 20
	maxLimit     = 100
)

// limit is the size of the page that is asked for.
func (q *query) limit() int {
	text := q.text("limit")
	if text == "" {
		return defaultLimit
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		q.addError("limit", "range", "must be an integer from 1 to "+strconv.Itoa(maxLimit))
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
		q.addError("cursor", "format", "is not a cursor that this list gave")
	}
	return n
}

// pathID is the integer in the path; what is no integer names nothing, so it is absent.
func (r *request) pathID(name string, notFound *apierror.Error) (int64, error) {
	n, err := strconv.ParseInt(r.Param(name), 10, 64)
	if err != nil || n < 1 {
		return 0, notFound
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

// toPatch is the form in which domains take it: nil leaves the value as it is, the address of nil takes it away.
func (n nullable[T]) toPatch() **T {
	if !n.Given {
		return nil
	}
	return &n.Value
}
