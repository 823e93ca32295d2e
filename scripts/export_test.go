package scripts

import "testing"

// DefineTestLayout defines a layout until the test ends.
func DefineTestLayout(t *testing.T, name string, names ...string) {
	t.Helper()
	t.Cleanup(func() { delete(layouts, name) })
	defineLayout(name, names...)
}
