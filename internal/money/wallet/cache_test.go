package wallet

import "testing"

// A value that was read before a change of this node must not come back after it.
func TestAValueReadBeforeAChangeIsNotCached(t *testing.T) {
	c := newStoreCache[string, int]("test", 10)
	found := map[string]int{}
	names := []string{"GOLD", "LEAD"}
	missing := c.getMany(names, found)
	if len(missing) != 2 {
		t.Fatalf("missing are %v", missing)
	}
	c.remove("GOLD")
	c.add(map[string]int{"GOLD": 1, "LEAD": 1}, missing)
	if missing = c.getMany(names, found); len(missing) != 1 || found["LEAD"] != 1 {
		t.Fatalf("missing are %v, found %v", missing, found)
	}
	c.add(map[string]int{"GOLD": 2}, missing)
	if missing = c.getMany(names, found); len(missing) != 0 || found["GOLD"] != 2 {
		t.Errorf("missing are %v, found %v", missing, found)
	}
}
