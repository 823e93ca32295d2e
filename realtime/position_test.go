package realtime

import (
	"testing"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"pgregory.net/rapid"
)

func TestAPositionHasOneSpelling(t *testing.T) {
	for text, want := range map[string]position{
		"0-0": {}, "1-00000001": {1, 1}, "7-0000000z": {7, 35}, "12-zzzzzzzz": {12, 2821109907455},
		"18446744073709551615-10000000": {1<<64 - 1, 78364164096},
	} {
		if got, ok := parsePosition(text); !ok || got != want || got.String() != text {
			t.Errorf("%s is %+v, %v, which is %s", text, got, ok, got)
		}
	}
	for _, text := range []string{
		"", "-", "0", "0-", "-0", "1-0", "1-1", "0-00000000", "0-00000001", "1-00000000", "00-0",
		"01-00000001", "+1-00000001", "-1-00000001", "1--0000001", "1-+0000001", "1-0000000Z", "1-0000_001",
		"1-000000001", "1-0000001", " 1-00000001", "1-00000001 ", "1-00000001-", "1-0000000é", "1-000000é",
		"18446744073709551616-00000001",
	} {
		if got, ok := parsePosition(text); ok {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}

func TestTextsAreTheSamePositionOnlyIfTheyAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[+0]?[0-9]{1,3}-[0-9a-zA-Z]{7,9}`).Draw(t, "text")
		if pos, ok := parsePosition(text); ok && pos.String() != text {
			t.Fatalf("%s is taken for %s", text, pos)
		}
	})
	for range 1000 {
		text := "3-" + idempotency.NewNonce()
		if pos, ok := parsePosition(text); !ok || pos.String() != text {
			t.Fatalf("%s is taken for %s, %v", text, pos, ok)
		}
	}
}
