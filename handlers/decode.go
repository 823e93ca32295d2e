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
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// The size of the largest request body, in bytes.
const (
	maxBodyBytes     = 64 << 10
	maxSaveBodyBytes = 320 << 10 // with a state of 256 KiB, its white space and the members around it
)

// bodyRule is the kind of body that an operation accepts.
type bodyRule struct {
	maxBytes int64
	optional bool // a missing body is the same as {}
}

// decode reads the body into in.
func (r *request) decode(in any, rule bodyRule) error {
	if r.Request.ContentLength > rule.maxBytes {
		return &http.MaxBytesError{Limit: rule.maxBytes}
	}
	buffer := getBuffer()
	defer putBuffer(buffer)
	body := r.Request.Body
	if r.Request.ContentLength < 0 { // unknown; net/http reads no more than a known length
		body = http.MaxBytesReader(r.Writer, body, rule.maxBytes)
	}
	if _, err := buffer.ReadFrom(body); err != nil {
		return fromReadError(err)
	}
	if buffer.Len() == 0 {
		if rule.optional {
			return nil
		}
		return apierror.InvalidJSON.WithReason("a JSON object is needed as the body")
	}
	if !isJSON(r.Request.Header.Get("Content-Type")) {
		return apierror.UnsupportedMediaType
	}
	if plain, ok := in.(plainDecoder); ok && plain.decodePlain(buffer.Bytes()) {
		return nil
	}
	if err := wire.UnmarshalStrict(buffer.Bytes(), in); err != nil {
		return fromDecodeError(err)
	}
	if firstJSONByte(buffer.Bytes()) != '{' { // null would decode into any struct
		return apierror.InvalidRequest.WithField("body", "type", "must be an object")
	}
	return checkGiven(buffer.Bytes(), in)
}

// A plainDecoder decodes the one spelling in which nearly all clients send a small body, without
// reflection. It returns false, and sets nothing, for everything else, valid or not.
type plainDecoder interface{ decodePlain(body []byte) bool }

// fromReadError returns the error of a body that could not be read: too large, or cut off by the
// client.
func fromReadError(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return apierror.InvalidJSON.WithReason("the body ended before it was complete")
}

// firstJSONByte returns the first byte of a JSON text that is not white space, or 0.
func firstJSONByte(text []byte) byte {
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
	if err != nil || media != "application/json" {
		return false
	}
	return params["charset"] == "" || strings.EqualFold(params["charset"], "utf-8")
}

// fromDecodeError returns invalid_json or invalid_request, with the field where decoding failed.
func fromDecodeError(err error) error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		field := fieldPath(semantic.JSONPointer)
		if _, ok := apierror.As(semantic.Err); ok { // of a type that decodes itself
			return apierror.InField(field, semantic.Err)
		}
		code, message := describeMismatch(semantic)
		return apierror.InvalidRequest.WithField(field, code, message)
	case errors.As(err, &syntactic):
		return fromSyntaxError(syntactic)
	default:
		return err
	}
}

func fromSyntaxError(err *jsontext.SyntacticError) error {
	field := fieldPath(err.JSONPointer)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return apierror.InvalidRequest.WithField(field, "duplicate", "is there more than once")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return apierror.InvalidJSON.WithReason("the body ends before the JSON does")
	case err.JSONPointer == "":
		return apierror.InvalidJSON.WithReason("%s at byte %d", err.Err, err.ByteOffset)
	default:
		message := err.Err.Error() + " at byte " + strconv.FormatInt(err.ByteOffset, 10)
		return apierror.InvalidJSON.WithField(field, "syntax", message)
	}
}

// describeMismatch returns why a valid JSON value cannot be decoded into its field.
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
	if goType == reflect.TypeFor[time.Time]() {
		return "type", "must be a time as a string, such as 2030-01-31T18:00:00Z"
	}
	switch goType.Kind() {
	case reflect.String:
		return "type", "must be a string"
	case reflect.Bool:
		return "type", "must be true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
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

// fieldPath returns a JSON pointer as JavaScript spells the path: /results/0/place is
// results[0].place.
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
	return truncateName(b.String())
}

// truncateName shortens a name that the caller chose.
func truncateName(name string) string {
	const maxBytes = 128
	if len(name) > maxBytes {
		return strings.ToValidUTF8(name[:maxBytes], "") + "…"
	}
	return name
}

// query reads the query parameters of a request and collects every error. request.checkQuery has
// refused those that the operation does not have.
type query struct {
	values      url.Values
	fieldErrors apierror.FieldErrors
}

func (r *request) query() *query {
	values, err := url.ParseQuery(r.Request.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.addError("query", "format", "is not escaped well")
	}
	return q
}

func (q *query) addError(name, code, message string) { q.fieldErrors.Add(name, code, message) }

// err returns invalid_request with every parameter that was read and is not valid, or nil.
func (q *query) err() error { return q.fieldErrors.Err() }

// text returns a parameter that may be given once, or "" when it is not given.
func (q *query) text(name string) string {
	values := q.values[name]
	if len(values) > 1 {
		q.addError(name, "duplicate", "is there more than once")
	}
	if len(values) == 0 {
		return ""
	}
	// An empty cursor is the first page: contract and clients write "?cursor=".
	if values[0] == "" && name != "cursor" {
		q.addError(name, "range", "must not be empty; leave it out for none")
	}
	return values[0]
}

// id returns a positive integer, or 0 when it is not given.
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

// flag returns true or false, or nil when it is not given.
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

// limit returns the size of the page, in items.
func (q *query) limit() int {
	text := q.text("limit")
	if text == "" {
		return wire.DefaultPageSize
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > wire.MaxPageSize {
		q.addError("limit", "range", "must be an integer from 1 to "+strconv.Itoa(wire.MaxPageSize))
		return wire.DefaultPageSize
	}
	return n
}

// afterID returns the cursor of a list that is ordered by id: the last id of the page before, or 0.
func (q *query) afterID() int64 {
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

// pathID is an id in a path, with the error for one that names nothing.
type pathID struct {
	name     string
	notFound *apierror.Error
}

// idSegments are the segments of paths that are ids.
var idSegments = map[string]*apierror.Error{
	"assets/{assetId}":           apierror.AssetNotFound,
	"entrants/{userId}":          apierror.NotEntrant,
	"entries/{userId}":           apierror.EntryNotFound,
	"friends/{userId}":           apierror.UserNotFound,
	"game-asset/{gameAssetId}":   apierror.AssetNotFound,
	"games/{gameId}":             apierror.GameNotFound,
	"seasons/{season}":           apierror.SeasonNotFound,
	"tournaments/{tournamentId}": apierror.TournamentNotFound,
	"users/{userId}":             apierror.UserNotFound,
}

// pathIDsOf returns the ids of a path in their order.
func pathIDsOf(path string) (ids []pathID) {
	segments := strings.Split(path, "/")
	for i, segment := range segments[1:] {
		if notFound, ok := idSegments[segments[i]+"/"+segment]; ok {
			ids = append(ids, pathID{strings.Trim(segment, "{}"), notFound})
		}
	}
	return ids
}

// checkPathIDs returns the error of an id in the path that is no positive integer.
func (r *request) checkPathIDs() error {
	for _, id := range r.route.pathIDs {
		if r.id(id.name) == 0 {
			return id.notFound
		}
	}
	return nil
}

// id returns an id in the path; checkPathIDs has checked it.
func (r *request) id(name string) int64 {
	text := r.Param(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || text[0] == '0' || text[0] == '+' { // one address for each thing
		return 0
	}
	return n
}
