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

// checkGiven returns invalid_request with every member of a body that is there with the value that
// stands for an absent one. in is what the body was decoded into.
func checkGiven(body []byte, in any) error {
	goType := reflect.TypeOf(in)
	if !hasGivenTag(goType) {
		return nil
	}
	var value any
	if err := wire.Unmarshal(body, &value); err != nil {
		return err
	}
	var errs apierror.FieldErrors
	addZeros(&errs, "", value, goType)
	return errs.Err()
}

// givenTags has the types that were asked for, and whether they have a field with givenTag.
var givenTags sync.Map

func hasGivenTag(t reflect.Type) bool {
	if known, ok := givenTags.Load(t); ok {
		return known.(bool)
	}
	has := searchGivenTag(t, map[reflect.Type]bool{})
	givenTags.Store(t, has)
	return has
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

// nullableValue returns the type of nullable.Value.
func nullableValue(t reflect.Type) (value reflect.Type, ok bool) {
	if t.Kind() != reflect.Struct || t.NumField() != 2 || t.Field(0).Name != "Given" || t.Field(1).Name != "Value" {
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
