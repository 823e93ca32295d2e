package wallet

import "testing"

// A token that was read before a change of this node must not come back after it.
func TestATokenReadBeforeAChangeIsNotCached(t *testing.T) {
	c := newTokenCache()
	found := map[string]Token{}
	missing, changes := c.get([]string{"GOLD", "not a code"}, found)
	if len(missing) != 1 || missing[0] != "GOLD" {
		t.Fatalf("missing are %v", missing)
	}
	c.remove("GOLD")
	c.add([]Token{{Code: "GOLD", Name: "old"}}, changes)
	if missing, changes = c.get(missing, found); len(missing) != 1 || len(found) != 0 {
		t.Fatalf("found %v", found)
	}
	c.add([]Token{{Code: "GOLD", Name: "new"}}, changes)
	if missing, _ = c.get(missing, found); len(missing) != 0 || found["GOLD"].Name != "new" {
		t.Errorf("missing are %v, found %v", missing, found)
	}
}
