package events

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/parlor-games/parlor/tests/testkit"
)

var update = flag.Bool("update", false, "write docs/events.md")

func TestTheReferenceIsUpToDate(t *testing.T) {
	const file = "../../../docs/events.md"
	if *update {
		const readable = 0o644
		testkit.Check(t, os.WriteFile(file, []byte(Reference()), readable))
	}
	if have, err := os.ReadFile(file); err != nil || string(have) != Reference() {
		t.Errorf("%s is out of date (%v); run `make generate`", file, err)
	}
}

func TestEventNamesAreUniqueAndWellFormed(t *testing.T) {
	form := regexp.MustCompile(`^(hello|(room|tournament|user|board|server|game|ledger)\.[a-z_]+)$`)
	member := regexp.MustCompile(`^[a-z][A-Za-z]*\??$`)
	seen := map[string]bool{}
	for _, e := range All() {
		if !form.MatchString(e.Name) || seen[e.Name] || e.Meaning == "" {
			t.Errorf("%+v", e)
		}
		seen[e.Name] = true
		for _, m := range e.MemberNames() {
			if !member.MatchString(m) {
				t.Errorf("%s: the member %q", e.Name, m)
			}
		}
	}
}

func TestMembersOfNestedData(t *testing.T) {
	got := Type{DataMembers: `a: x|y, b: [{c, d: {e}}], f?, g (null: free, or gone)`}.MemberNames()
	if !slices.Equal(got, []string{"a", "b", "f?", "g"}) {
		t.Errorf("%q", got)
	}
}
