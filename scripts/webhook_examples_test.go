package scripts_test

import (
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// defineWebhook returns a call that replaces the definition was of a webhook; a game may have two.
func (f *fixture) defineWebhook(id, was, definition string) call {
	return f.newCall(scripts.WebhookDefine, values{
		"webhook_id": id, "was": was, "definition": definition, "most": 2,
	})
}

// commitWebhook returns a call of a leader that has read the first round.
func (f *fixture) commitWebhook(fence int, rest ...any) call {
	return f.newCall(scripts.WebhookCommit, values{
		"fence": fence, "round": "one", "most_attempts": 2, "most_parked": 2, "attempts_count": 2, "parked_count": 1,
	}, append([]any{"attempt-1", "attempt-2", "parked-1", "pos:e", "7-abc"}, rest...)...)
}

func (f *fixture) rewindWebhook(round string) call {
	return f.newCall(scripts.WebhookRewind, values{"round": round}, "pos:e", "3-abc")
}

// webhookExamples has calls about webhooks.
var webhookExamples = []example{
	{scripts.WebhookDefine, "a new one", "ok", func(f *fixture) call { return f.defineWebhook("a", "", "{1}") }},
	{scripts.WebhookDefine, "another definition", "ok", func(f *fixture) call {
		f.defineWebhook("a", "", "{1}").want(scripts.OK)
		return f.defineWebhook("a", "{1}", "{2}")
	}},
	{scripts.WebhookDefine, "of one that somebody changed", "stale", func(f *fixture) call {
		f.defineWebhook("a", "", "{1}").want(scripts.OK)
		return f.defineWebhook("a", "{0}", "{2}")
	}},
	{scripts.WebhookDefine, "none any more", "ok", func(f *fixture) call {
		f.defineWebhook("a", "", "{1}").want(scripts.OK)
		return f.defineWebhook("a", "{1}", "")
	}},
	{scripts.WebhookDefine, "one too many", "limit_reached", func(f *fixture) call {
		f.defineWebhook("a", "", "{1}").want(scripts.OK)
		f.defineWebhook("b", "", "{1}").want(scripts.OK)
		return f.defineWebhook("c", "", "{1}")
	}},
	{scripts.WebhookRewind, "", "ok", func(f *fixture) call { return f.rewindWebhook("one") }},
	{scripts.WebhookCommit, "of the newest leader", "ok", func(f *fixture) call {
		f.rewindWebhook("one").want(scripts.OK)
		f.commitWebhook(2, "behind:a", "e|3-abc|1|1|1").want(scripts.OK)
		return f.commitWebhook(3, "behind:a", "")
	}},
	{scripts.WebhookCommit, "of an older leader", "stale", func(f *fixture) call {
		f.rewindWebhook("one").want(scripts.OK)
		f.commitWebhook(3).want(scripts.OK)
		return f.commitWebhook(2)
	}},
	{scripts.WebhookCommit, "of a leader that has read an older round", "stale", func(f *fixture) call {
		f.rewindWebhook("one").want(scripts.OK)
		f.rewindWebhook("two").want(scripts.OK)
		return f.commitWebhook(2)
	}},
	{scripts.WebhookUnpark, "", "ok", func(f *fixture) call {
		f.rewindWebhook("one").want(scripts.OK)
		f.commitWebhook(2).want(scripts.OK)
		return f.newCall(scripts.WebhookUnpark, values{"round": "two"})
	}},
}

// What was given up is sent again in the order in which it was, once.
func TestWhatIsParkedIsPutBehindWhatIsSentAgain(t *testing.T) {
	f := newFixture(t, openEmbedded(t))
	list := func(key string) []string {
		return testkit.Must(f.db.Client.LRange(t.Context(), key, 0, -1).Result())(t)
	}
	f.rewindWebhook("one").want(scripts.OK)
	f.commitWebhook(2).want(scripts.OK)
	second := f.commitWebhook(2)
	second.rest[2] = "parked-2"
	second.want(scripts.OK)
	f.newCall(scripts.WebhookUnpark, values{"round": "one"}).want(scripts.OK)
	again := list(keys.WebhookAgain(f.id, "wh_a"))
	if len(again) != 2 || again[0] != "parked-1" || again[1] != "parked-2" {
		t.Errorf("sent again: %v", again)
	}
	third := f.commitWebhook(2)
	third.rest[2], third.rest[3], third.rest[4] = "parked-3", "pos:again", "2-again"
	third.want(scripts.OK)
	f.newCall(scripts.WebhookUnpark, values{"round": "one"}).want(scripts.OK)
	if again := list(keys.WebhookAgain(f.id, "wh_a")); len(again) != 1 || again[0] != "parked-3" {
		t.Errorf("sent again after the first two were done: %v", again)
	}
}
