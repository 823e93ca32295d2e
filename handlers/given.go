package handlers

import (
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// givenTag marks fields whose zero value stands for an absent member: `given:"nonzero"`. A member
// that is there must not have that value: 0 shards are not the default number of shards.
const givenTag = "given"

// requiredTag marks fields of an input that must be there, not empty and not 0: `required:"true"`.
const requiredTag = "required"

// inputTags is what the tags of an input's type say.
type inputTags struct {
	hasGiven bool // it has a field with givenTag
	required []requiredField
}

type requiredField struct {
	name  string // in JSON
	index []int
}

// knownInputTags has the inputTags of the types that were asked for.
var knownInputTags sync.Map

// inputTagsOf returns the tags of the type of in, a pointer.
func inputTagsOf(in any) *inputTags {
	t := reflect.TypeOf(in)
	if known, ok := knownInputTags.Load(t); ok {
		return known.(*inputTags)
	}
	tags := &inputTags{hasGiven: searchGivenTag(t, map[reflect.Type]bool{})}
	if t.Elem().Kind() == reflect.Struct {
		for _, field := range reflect.VisibleFields(t.Elem()) {
			if field.Tag.Get(requiredTag) != "" {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				tags.required = append(tags.required, requiredField{name, field.Index})
			}
		}
	}
	knownInputTags.Store(t, tags)
	return tags
}

// checkRequired returns invalid_request with every required member that is missing.
func checkRequired(in any) error {
	var errs apierror.FieldErrors
	for _, field := range inputTagsOf(in).required {
		value := reflect.ValueOf(in).Elem().FieldByIndex(field.index)
		if value.IsZero() || value.Kind() == reflect.Slice && value.Len() == 0 {
			errs.Add(field.name, "required", "is required")
		}
	}
	return errs.Err()
}

// checkGiven returns invalid_request with every member that the body gives explicitly with the
// value that means absent. in is the decoded body.
func checkGiven(body []byte, in any) error {
	if !inputTagsOf(in).hasGiven {
		return nil
	}
	var value any
	if err := wire.Unmarshal(body, &value); err != nil {
		return err
	}
	var errs apierror.FieldErrors
	addZeros(&errs, "", value, reflect.TypeOf(in))
	return errs.Err()
}

func searchGivenTag(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t = decodedType(t); t.Kind() != reflect.Struct || seen[t] {
		return false
	}
	seen[t] = true
	for _, field := range reflect.VisibleFields(t) {
		if field.Tag.Get(givenTag) != "" || searchGivenTag(field.Type, seen) {
			return true
		}
	}
	return false
}

// decodedType returns the type of a member, or of the items of a list.
func decodedType(t reflect.Type) reflect.Type {
	for {
		switch value, isNullable := nullableValue(t); {
		case isNullable:
			t = value
		case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice:
			t = t.Elem()
		default:
			return t
		}
	}
}

// nullableValue returns the type of wire.Nullable.Value.
func nullableValue(t reflect.Type) (value reflect.Type, ok bool) {
	if t.Kind() != reflect.Struct || t.NumField() != 2 || t.Field(0).Name != "IsGiven" || t.Field(1).Name != "Value" {
		return nil, false
	}
	return t.Field(1).Type, true
}

func addZeros(errs *apierror.FieldErrors, path string, value any, t reflect.Type) {
	t = decodedType(t)
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			addZeros(errs, path+"["+strconv.Itoa(i)+"]", item, t)
		}
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return
		}
		for _, field := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			member, isThere := value[name]
			if name == "" || !isThere {
				continue
			}
			memberPath := strings.TrimPrefix(path+"."+name, ".")
			if field.Tag.Get(givenTag) != "" && (member == "" || member == 0.0) {
				errs.Add(memberPath, "range", "must not be "+zeroName(member)+"; leave it out for the default")
			}
			addZeros(errs, memberPath, member, field.Type)
		}
	}
}

func zeroName(value any) string {
	if value == "" {
		return "empty"
	}
	return "0"
}
