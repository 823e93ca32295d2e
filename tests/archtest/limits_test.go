package archtest

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/players/progress"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

// TestEveryQuotaIsOnItsPage compares docs/limits.md with the quotas in the code.
func TestEveryQuotaIsOnItsPage(t *testing.T) {
	page := testkit.Must(os.ReadFile("../../docs/limits.md"))(t)
	limits, inRooms := ratelimit.DefaultLimits(), rooms.DefaultQuotas()
	for what, most := range map[string]int64{
		"rooms that a player has made and that have not ended":    int64(inRooms.OpenRooms),
		"seats of a player in rooms that have not ended":          int64(inRooms.Seats),
		"rooms that a player makes in a day":                      limits[ratelimit.Rooms].Burst,
		"joins of a player in a day":                              limits[ratelimit.Joins].Burst,
		"requests of a player with an Idempotency-Key in a day":   limits[ratelimit.KeyedRequests].Burst,
		"sign-ins of an address with an Idempotency-Key in a day": limits[ratelimit.KeyedSignIns].Burst,
		"save slots of a player in a game":                        progress.MaxSlots,
		"bytes of all saves of a guest":                           progress.MaxGuestTotalBytes,
		"bytes of all saves of another player":                    progress.MaxTotalBytes,
		"friends, and requests that a player sent":                users.MaxFriends,
		"requests of others that a player sees":                   users.MaxIncomingRequests,
		"players whom a player blocks":                            users.MaxBlocked,
	} {
		if row := "| " + what + " | " + withCommas(most) + " |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/limits.md has no row %q", row)
		}
	}
	for class, limit := range limits {
		if limit.PerDay > 0 && limit.PerDay != limit.Burst {
			t.Errorf("the page says that %s is refilled in a day: %+v", class, limit)
		}
	}
}

// withCommas returns a number with a comma before each three digits: 1,048,576.
func withCommas(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
