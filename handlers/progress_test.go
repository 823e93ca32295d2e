package handlers_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestAServerReplacesASave(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.expect(200, "PATCH", fmt.Sprintf("/api/v1/admin/games/%d", f.game), f.serverKey,
			`{"settings":{"progressRules":[{"path":"gems","serverOnly":true},{"path":"level","monotonic":"up"}]}}`)
		_, otherKey := f.createOtherGame()
		ann := f.guest("Ann")
		saves, events := f.dial(savePath, ann.token), f.newNode().dialRealtime(ann)
		main := fmt.Sprintf("/api/v1/admin/users/%d/saves/main", ann.id)

		saves.expectOK("saved", "save", `{"slot":"main","state":{"gems":99,"level":1}}`)
		if got := saves.expectOK("loaded", "load", `{"slot":"main"}`); got.data("state.gems") != nil {
			t.Errorf("a player wrote a member under serverOnly: %s", got.raw)
		}
		replaced := f.expect(200, "PUT", main, f.serverKey, `{"state":{"gems":5,"level":1},"version":1}`)
		if replaced.id("version") != 2 || replaced.text("slot") != "main" || replaced.id("size") != 20 {
			t.Errorf("the replaced save is %s", replaced.raw)
		}
		if again := f.expect(200, "PUT", main, f.serverKey,
			`{"version":1,"state":{ "gems":5, "level":1}}`); string(again.raw) != string(replaced.raw) {
			t.Errorf("sent twice it returns\n%s\n%s", replaced.raw, again.raw)
		}
		saves.expectOK("saved", "save", `{"slot":"main","state":{"level":2},"version":2}`)
		if got := saves.expectOK("loaded", "load", `{"slot":"main"}`); got.data("state.gems") != 5. {
			t.Errorf("what the server wrote became %s", got.raw)
		}
		for version := 1.; version <= 3; version++ {
			if got := events.expectEvent("user.progress"); got.data("version") != version {
				t.Errorf("the event of version %v is %s", version, got.raw)
			}
		}

		conflict := f.expectError(409, "version_conflict", "PUT", main, f.serverKey, `{"state":{},"version":1}`)
		if conflict.id("current.version") != 3 || conflict.id("current.state.level") != 2 {
			t.Errorf("the conflict has not the stored save: %s", conflict.raw)
		}
		rejected := f.expectError(422, "save_rejected", "PUT", main, f.serverKey, `{"state":{"level":1},"version":3}`)
		if rejected.text("rule") != "monotonic" || rejected.text("path") != "level" {
			t.Errorf("the rejected save is reported as %s", rejected.raw)
		}
		f.expectError(404, "user_not_found", "PUT", main, otherKey, `{"state":{},"version":3}`)
		f.expectError(403, "forbidden", "PUT", main, ann.token, `{"state":{},"version":3}`)
		if got := saves.expectOK("loaded", "load", `{"slot":"main"}`); got.data("version") != 3. {
			t.Errorf("an error changed the save: %s", got.raw)
		}
		f.expect(200, "PUT", main, adminKey, `{"state":{"level":3},"version":3}`)
		if got := saves.expectOK("loaded", "load", `{"slot":"main"}`); got.data("state.gems") != nil {
			t.Errorf("the operator left a member that is not in the state: %s", got.raw)
		}
	})
}

func TestTheSizeOfAReplacedSave(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	slot := fmt.Sprintf("/api/v1/admin/users/%d/saves/large", ann.id)
	const maxState = 256 << 10
	state := func(bytes int) string { return `{"x":"` + strings.Repeat("x", bytes-len(`{"x":""}`)) + `"}` }

	largest := f.expect(200, "PUT", slot, f.serverKey, `{"state":`+strings.Repeat(" ", 60<<10)+state(maxState)+`}`)
	if largest.id("size") != maxState {
		t.Errorf("the largest save is %s", largest.raw)
	}
	f.expectError(413, "payload_too_large", "PUT", slot, f.serverKey, `{"version":1,"state":`+state(maxState+1)+`}`)
	f.expectError(413, "payload_too_large", "PUT", slot, f.serverKey, `{"version":1,"state":`+state(maxState)+
		strings.Repeat(" ", 64<<10)+`}`)
	for n := range 15 {
		f.expect(200, "PUT", fmt.Sprintf("%s-%d", slot, n), f.serverKey, `{"state":{}}`)
	}
	full := f.expectError(409, "limit_reached", "PUT", slot+"-more", f.serverKey, `{"state":{}}`)
	if full.text("limit") != "slots" || full.id("max") != 16 {
		t.Errorf("a slot too many is reported as %s", full.raw)
	}
}
