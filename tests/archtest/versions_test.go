package archtest

import (
	"fmt"
	"os"
	"regexp"
	"testing"
)

// TestLibrariesHaveTheirFixes keeps go.mod from going back behind releases that docs/traps.md
// needs.
func TestLibrariesHaveTheirFixes(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for library, oldest := range map[string][3]int{
		"github.com/redis/go-redis/v9": {9, 22, 0}, // messages lost, Receive that hangs, shards of the wrong server
		"github.com/olahol/melody":     {1, 4, 0},  // a deadline for each write
		"github.com/gorilla/websocket": {1, 5, 3},
	} {
		m := regexp.MustCompile(regexp.QuoteMeta(library) + ` v(\d+\.\d+\.\d+)\b`).FindSubmatch(text)
		if m == nil {
			t.Errorf("go.mod has no %s", library)
			continue
		}
		var got [3]int
		if _, err := fmt.Sscanf(string(m[1]), "%d.%d.%d", &got[0], &got[1], &got[2]); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if got[i] != oldest[i] {
				if got[i] < oldest[i] {
					t.Errorf("%s %v is older than %v", library, got, oldest)
				}
				break
			}
		}
	}
}
