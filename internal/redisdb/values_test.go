package redisdb_test

import (
	"testing"

	"github.com/parlor-games/parlor/internal/redisdb"
)

func TestAnEmptyNumberIsOptional(t *testing.T) {
	v := redisdb.HashValues("an asset", []any{"7", nil, "", "x"})
	if n := v.OptionalInt(); n == nil || *n != 7 {
		t.Errorf("%v", n)
	}
	if absent, empty := v.OptionalInt(), v.OptionalInt(); absent != nil || empty != nil || v.Err() != nil {
		t.Errorf("%v, %v, %v", absent, empty, v.Err())
	}
	if v.OptionalInt(); v.Err() == nil {
		t.Error("a text was decoded as a number")
	}
}
