package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/dialguard"
	"github.com/parlor-games/parlor/internal/base/dialguard/dialguardtest"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/ops/webhooks"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func TestEventsAreDeliveredInOrderSignedAndOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, in *installation) {
		r := receive(t, always(204))
		in.happen(t, 0, "before")
		w := in.create(t, r.URL)
		in.lead(t)
		in.happen(t, 0, rooms(20, 5)...)
		in.happen(t, 1, "other")
		r.want(t, 101)
		first := func(d delivery) bool { return d.id == "3_r0_2-aaaaaaaa" }
		d := r.got[slices.IndexFunc(r.got, first)]
		want := `{"gameId":3,"feed":"r0","position":"2-aaaaaaaa","roomId":"room-0","seq":2,"data":{"userId":7,"ready":true,` +
			`"version":4}}`
		if !strings.HasSuffix(string(d.body), `"data":`+want+`}`) || d.kind != "room.ready" {
			t.Errorf("the message %s is %s", d.id, d.body)
		}
		verifier := testkit.Must(standardwebhooks.NewWebhook(w.Secret))(t)
		testkit.Check(t, verifier.Verify(d.body, d.header))
		redistest.Eventually(t, "the positions are stored", func() bool {
			state := in.db.Client.HGetAll(t.Context(), keys.WebhookState(game, w.ID)).Val()
			return state["pos:r0"] == "101-aaaaaaaa" && state["pos:r1"] == "1-aaaaaaaa" && state["oldest"] == ""
		})
		redistest.Eventually(t, "the feed may be trimmed", func() bool {
			return in.db.Client.HGet(t.Context(), keys.FeedHead(keys.FreeShard(0), game), "kept").Val() == "101"
		})
		if got := in.get(t, w.ID); got.State != webhooks.OK || got.LagSeconds != 0 || got.LastError != nil {
			t.Errorf("the webhook is %+v", got)
		}
		if r.doubles != 0 {
			t.Errorf("%d events came twice", r.doubles)
		}
	})
}

func TestATargetThatIsDownForTenMinutesMissesNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, in *installation) {
		r := receive(t, always(0))
		w := in.create(t, r.URL)
		kill := in.lead(t)
		in.happen(t, 0, rooms(30, 4)...)
		redistest.Eventually(t, "every room has failed", func() bool { return in.get(t, w.ID).WaitingRooms == 30 })
		if got := in.get(t, w.ID); got.State != webhooks.Failing || got.LastError == nil || got.LagSeconds == 0 {
			t.Errorf("the webhook is %+v", got)
		}
		kept := in.db.Client.HGet(t.Context(), keys.FeedHead(keys.FreeShard(0), game), "kept").Val()
		if kept != "" && kept != "0" {
			t.Errorf("the feed may be trimmed up to %s", kept)
		}
		kill() // the next leader knows which rooms wait
		in.lead(t)
		for range 10 {
			in.pass(time.Minute)
			in.happen(t, 0, rooms(30, 1)...)
		}
		r.setAnswer(always(200))
		in.pass(11 * time.Minute) // the longest delay that any room can have by now
		r.want(t, 30*14)
		redistest.Eventually(t, "nothing waits", func() bool { return in.get(t, w.ID).State == webhooks.OK })
		redistest.Eventually(t, "no room is behind", func() bool {
			fields := in.db.Client.HKeys(t.Context(), keys.WebhookState(game, w.ID)).Val()
			return !slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "behind:") })
		})
	})
}

func TestATargetThatFailsEveryThirdTimeGetsEverythingInOrder(t *testing.T) {
	in := install(t)
	var n atomic.Int64
	r := receive(t, func(delivery) int {
		if n.Add(1)%3 == 0 {
			return 500
		}
		return 200
	})
	in.create(t, r.URL)
	in.lead(t)
	in.happen(t, 0, rooms(40, 10)...)
	redistest.Eventually(t, "400 events come", func() bool {
		in.pass(time.Minute)
		return r.count() == 400
	})
	r.want(t, 400)
}

// A room whose events are refused holds up no other room, not even of its lane.
func TestARoomThatFailsHoldsUpOnlyItself(t *testing.T) {
	in := install(t)
	r := receive(t, func(d delivery) int {
		if d.room == "room-0" {
			return 500
		}
		return 200
	})
	w := in.create(t, r.URL)
	kill := in.lead(t)
	in.happen(t, 0, rooms(50, 6)...)
	r.want(t, 49*6)
	if got := in.get(t, w.ID); got.WaitingRooms > 1 {
		t.Errorf("%d rooms wait", got.WaitingRooms)
	}
	kill()
	in.lead(t)
	in.happen(t, 0, rooms(50, 1)...)
	r.want(t, 49*7)
	if r.doubles > 0 {
		t.Errorf("%d events came twice", r.doubles)
	}
	r.setAnswer(always(200))
	in.pass(time.Hour)
	r.want(t, 50*7)
}

func TestAnEventIsParkedAfterADayAndCanBeSentAgain(t *testing.T) {
	eachStore(t, func(t *testing.T, in *installation) {
		r := receive(t, func(d delivery) int {
			if d.room == "room-0" {
				return 500
			}
			return 200
		})
		w := in.create(t, r.URL)
		in.lead(t)
		in.happen(t, 0, rooms(2, 1)...)
		redistest.Eventually(t, "the event is parked", func() bool {
			in.pass(time.Hour)
			in.happen(t, 0, "room-1") // the target as a whole works
			return in.get(t, w.ID).Parked == 1
		})
		parked := testkit.Must(in.Deliveries(t.Context(), operator, game, w.ID, webhooks.Parked))(t)
		if len(parked) != 1 || parked[0].Room != "room-0" || parked[0].Status != 500 || parked[0].Response != "status 500" {
			t.Fatalf("parked: %+v", parked)
		}
		r.setAnswer(always(200))
		testkit.Must(in.Replay(t.Context(), operator, game, w.ID, webhooks.Replay{Parked: true}))(t)
		redistest.Eventually(t, "it came by its first id", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return slices.ContainsFunc(r.got, func(d delivery) bool {
				return d.room == "room-0" && d.id == parked[0].MessageID
			})
		})
		parked = testkit.Must(in.Deliveries(t.Context(), operator, game, w.ID, webhooks.Parked))(t)
		if len(parked) != 0 {
			t.Errorf("still parked: %+v", parked)
		}
	})
}

func TestATargetThatOnlyFailsIsDisabledAfterADayAndGoesOnLater(t *testing.T) {
	in, r := install(t), receive(t, always(503))
	w := in.create(t, r.URL)
	in.lead(t)
	in.happen(t, 0, rooms(3, 2)...)
	redistest.Eventually(t, "it is disabled", func() bool {
		in.pass(2 * time.Hour)
		return in.get(t, w.ID).State == webhooks.Disabled
	})
	got := in.get(t, w.ID)
	if got.Active || got.LastError == nil || !strings.Contains(*got.LastError, "24 hours") {
		t.Errorf("%+v", got)
	}
	redistest.Eventually(t, "no active one is counted", func() bool { return in.active.Load() == 0 })
	page := testkit.Must(in.trail.List(t.Context(), operator, trail.Query{Limit: 10}))(t)
	if len(page.Records) != 1 || page.Records[0].Target != "webhook:"+w.ID || page.Records[0].Actor != "system:0" {
		t.Errorf("the trail has %+v", page.Records)
	}
	r.setAnswer(always(200))
	testkit.Must(in.Patch(t.Context(), operator, game, w.ID, webhooks.PatchInput{Active: new(true)}))(t)
	r.want(t, 6)
	if in.active.Load() != 1 {
		t.Errorf("%d active ones", in.active.Load())
	}
}

func TestTheStatus410DisablesAtOnce(t *testing.T) {
	in, r := install(t), receive(t, always(410))
	w := in.create(t, r.URL)
	in.lead(t)
	in.happen(t, 0, "a")
	redistest.Eventually(t, "it is disabled", func() bool { return in.get(t, w.ID).State == webhooks.Disabled })
	asked := r.asked()
	in.happen(t, 0, "b")
	in.pass(time.Hour)
	testkit.Must(in.Test(t.Context(), operator, game, w.ID))(t)
	if r.asked() != asked+1 {
		t.Errorf("%d requests after it was disabled", r.asked()-asked)
	}
}

func TestARedirectIsAFailureAndIsNotFollowed(t *testing.T) {
	in, r := install(t), receive(t, always(302))
	w := in.create(t, r.URL)
	a := testkit.Must(in.Test(t.Context(), operator, game, w.ID))(t)
	if a.Status != 302 || a.Error == nil || r.asked() != 1 {
		t.Errorf("%+v after %d requests", a, r.asked())
	}
}

func TestOnlyAllowedAddressesAreConnectedTo(t *testing.T) {
	in, r := install(t), receive(t, always(200))
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(r.URL, "http://"))
	public := in.node(nil, signingKey)
	for _, url := range []string{
		"", "game.example", "ftp://game.example", "http://game.example/", "https://", "https://user@game.example/",
		"https://game.example/#part", "https://127.0.0.1/", "https://[::1]/", "https://10.0.0.1/", "https://169.254.169.254/",
		"https://[::ffff:127.0.0.1]/", "https://168.63.129.16/", "https://" + strings.Repeat("a", 2048),
	} {
		_, err := public.Create(t.Context(), operator, game, webhooks.Input{URL: url, Kinds: []string{"rooms"}})
		if !errors.Is(err, apierror.InvalidRequest) {
			t.Errorf("%s: %v", url, err)
		}
	}
	// A name that is public when it is looked at, and this machine when it is connected to.
	address := "93.184.216.34"
	in.dialer = &net.Dialer{Resolver: dialguardtest.ResolverTo(func() string { return address })}
	for name, node := range map[string]*webhooks.Service{
		"nothing": in.node(nil, signingKey),
		"another": in.node([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, signingKey),
		"all":     in.node([]netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}, signingKey),
	} {
		w := testkit.Must(node.Create(t.Context(), operator, game, webhooks.Input{
			URL: "https://hook.example:" + port, Kinds: []string{"seats"},
		}))(t)
		address = "127.0.0.1"
		a := testkit.Must(node.Test(t.Context(), operator, game, w.ID))(t)
		if a.Status != 0 || a.Error == nil || *a.Error != dialguard.ErrNotAllowed.Error() || r.asked() != 0 {
			t.Errorf("with the network %s: %+v after %d requests", name, a, r.asked())
		}
	}
	// Plain http is for the named networks alone.
	address = "93.184.216.34"
	node := in.node(dialguard.Loopback, signingKey)
	w := testkit.Must(node.Create(t.Context(), operator, game, webhooks.Input{
		URL: "http://hook.example:" + port, Kinds: []string{"seats"},
	}))(t)
	a := testkit.Must(node.Test(t.Context(), operator, game, w.ID))(t)
	if a.Error == nil || *a.Error != dialguard.ErrNotAllowed.Error() {
		t.Errorf("plain http to a public address: %+v", a)
	}
}

func TestBothSecretsSignForADay(t *testing.T) {
	in, r := install(t), receive(t, always(200))
	w := in.create(t, r.URL)
	rotated := testkit.Must(in.RotateSecret(t.Context(), operator, game, w.ID))(t)
	if rotated.Secret == w.Secret || rotated.Version != 2 {
		t.Fatalf("%+v", rotated)
	}
	for _, step := range []struct {
		pass     time.Duration
		oldIsOK  bool
		received int
	}{{0, true, 1}, {23 * time.Hour, true, 2}, {2 * time.Hour, false, 3}} {
		in.pass(step.pass)
		testkit.Must(in.Test(t.Context(), operator, game, w.ID))(t)
		d := r.got[step.received-1]
		for secret, want := range map[string]bool{w.Secret: step.oldIsOK, rotated.Secret: true} {
			verifier := testkit.Must(standardwebhooks.NewWebhook(secret))(t)
			if err := verifier.VerifyIgnoringTimestamp(d.body, d.header); (err == nil) != want {
				t.Errorf("after %v the first secret is %v: %v", step.pass, secret == w.Secret, err)
			}
		}
	}
}

func TestAReplaySendsAgainWhatIsStored(t *testing.T) {
	eachStore(t, func(t *testing.T, in *installation) {
		r := receive(t, always(200))
		w := in.create(t, r.URL)
		in.lead(t)
		in.happen(t, 0, rooms(5, 2)...)
		r.want(t, 10)
		redistest.Eventually(t, "the position is stored", func() bool {
			return in.db.Client.HGet(t.Context(), keys.WebhookState(game, w.ID), "pos:r0").Val() == "10-aaaaaaaa"
		})
		testkit.Must(in.Replay(t.Context(), operator, game, w.ID, webhooks.Replay{
			After: map[string]string{"r0": "7-aaaaaaaa"},
		}))(t)
		redistest.Eventually(t, "three come again", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.doubles == 3 })
		in.pass(time.Hour)
		middle := time.Now().Add(30 * time.Minute)
		in.happen(t, 0, rooms(5, 1)...)
		r.want(t, 15)
		in.wantPosition(t, w.ID, "15-aaaaaaaa") // else a replay begins with what is not stored yet
		testkit.Must(in.Replay(t.Context(), operator, game, w.ID, webhooks.Replay{From: &middle}))(t)
		redistest.Eventually(t, "five come again", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.doubles == 8 })
		long := time.Now().Add(-time.Hour)
		testkit.Must(in.Replay(t.Context(), operator, game, w.ID, webhooks.Replay{From: &long}))(t)
		redistest.Eventually(t, "all come again", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.doubles == 23 })
		for name, bad := range map[string]webhooks.Replay{
			"nothing":  {},
			"both":     {From: &long, Parked: true},
			"a feed":   {After: map[string]string{"r9": "1-a"}},
			"no place": {After: map[string]string{"r0": "x"}},
		} {
			testkit.Fails(in.Replay(t.Context(), operator, game, w.ID, bad))(t, apierror.InvalidRequest, "a replay of %s", name)
		}
	})
}

func TestWhatWasTrimmedIsToldByAGap(t *testing.T) {
	eachStore(t, func(t *testing.T, in *installation) {
		r := receive(t, always(200))
		w := in.create(t, r.URL)
		kill := in.lead(t)
		in.happen(t, 0, rooms(3, 1)...)
		r.want(t, 3)
		redistest.Eventually(t, "the position is stored", func() bool {
			return in.db.Client.HGet(t.Context(), keys.WebhookState(game, w.ID), "pos:r0").Val() == "3-aaaaaaaa"
		})
		kill()
		in.happen(t, 0, rooms(3, 4)...)
		testkit.Check(t, in.db.Client.LTrim(t.Context(), keys.Feed(keys.FreeShard(0), game), -5, -1).Err())
		in.lead(t)
		r.want(t, 3+5+1)
		at := slices.IndexFunc(r.got, func(d delivery) bool { return d.kind == "webhook.gap" })
		if at < 0 || !strings.HasSuffix(string(r.got[at].body), `"data":{"gameId":3,"feed":"r0","position":"3-aaaaaaaa"}}`) {
			t.Errorf("no gap among %+v", r.got)
		}
	})
}

func TestALeaderThatWasReplacedStoresNothingAndStops(t *testing.T) {
	in, r := install(t), receive(t, always(200))
	w := in.create(t, r.URL)
	in.lead(t)
	in.happen(t, 0, rooms(10, 1)...)
	r.want(t, 10)
	redistest.Eventually(t, "the position is stored", func() bool {
		return in.db.Client.HGet(t.Context(), keys.WebhookState(game, w.ID), "fence").Val() == "1"
	})
	in.lead(t) // the first one does not know
	in.happen(t, 0, rooms(10, 20)...)
	r.want(t, 210)
	redistest.Eventually(t, "the second one stores", func() bool {
		state := in.db.Client.HGetAll(t.Context(), keys.WebhookState(game, w.ID)).Val()
		return state["fence"] == "2" && state["pos:r0"] == "210-aaaaaaaa"
	})
}

// Leaders die at any time, also between a delivery and its position.
func TestLeadersThatDieLoseNothing(t *testing.T) {
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	defer func() { _ = db.Close() }()
	in := installOn(t, db, server.URL())
	var n atomic.Int64
	r := receive(t, func(delivery) int {
		if k := n.Add(1) % 97; k == 13 || k == 14 {
			return 500
		}
		return 200
	})
	w := in.create(t, r.URL)
	const all = 8000
	in.happen(t, 0, rooms(100, all/100)...)
	stored := func() string {
		return in.db.Client.HGet(t.Context(), keys.WebhookState(game, w.ID), "pos:r0").Val()
	}
	leaders := 0
	for ; r.count() < all; leaders++ {
		if leaders > 200 {
			t.Fatalf("%d of %d events after %d leaders", r.count(), all, leaders)
		}
		kill := in.leadUntilKilled(t)
		before, asked := stored(), 0
		redistest.Eventually(t, "the leader stores something, goes on and dies", func() bool {
			in.pass(time.Second)
			if asked == 0 && stored() != before {
				asked = r.asked()
			}
			return asked > 0 && r.asked() > asked+300 || r.count() == all
		})
		kill()
	}
	r.want(t, all)
	if leaders < 5 {
		t.Errorf("only %d leaders died", leaders)
	}
	t.Logf("%d leaders, %d doubles", leaders, r.doubles)
}

func TestMoneyComesFromTheLedger(t *testing.T) {
	eachStore(t, func(t *testing.T, in *installation) {
		r := receive(t, always(200))
		entry := func(n int, reason string) string {
			other := "h"
			if slices.Contains([]string{"entry", "payout", "refund"}, reason) {
				other = "e"
			}
			return fmt.Sprintf("1764264746123|nonce%d|GOLD|%s|asset:7|w7:-5;%s:5", n, reason, other)
		}
		testkit.Check(t, in.db.Client.RPush(t.Context(), keys.Ledger(game), entry(1, "purchase")).Err())
		in.create(t, r.URL, "money")
		in.lead(t)
		for i, reason := range []string{"entry", "purchase", "payout", "refund", "grant"} {
			testkit.Check(t, in.db.Client.RPush(t.Context(), keys.Ledger(game), entry(i+2, reason)).Err())
		}
		r.want(t, 2)
		want := `"data":{"gameId":3,"feed":"money","position":"3-nonce3","data":{"gameId":3,"id":3,"reason":"purchase"}}}`
		if d := r.got[0]; d.kind != "ledger.entry" || !strings.HasSuffix(string(d.body), want) {
			t.Errorf("%s", d.body)
		}
	})
}

func TestSecretsStandNowhere(t *testing.T) {
	in, r := install(t), receive(t, always(500))
	w := in.create(t, r.URL)
	rotated := testkit.Must(in.RotateSecret(t.Context(), operator, game, w.ID))(t)
	in.lead(t)
	in.happen(t, 0, "a")
	redistest.Eventually(t, "it is disabled", func() bool {
		in.pass(2 * time.Hour)
		return in.get(t, w.ID).State == webhooks.Disabled
	})
	list := testkit.Must(in.List(t.Context(), operator, game))(t)
	attempts := testkit.Must(in.Deliveries(t.Context(), operator, game, w.ID, ""))(t)
	text := string(testkit.Must(wire.Marshal([]any{list, attempts, in.get(t, w.ID)}))(t))
	for _, secret := range []string{w.Secret, rotated.Secret} {
		bare := strings.TrimPrefix(secret, "whsec_")
		for where, text := range map[string]string{
			"the views": text, "the log": in.log.String(), "the store": redistest.Dump(t, in.db),
		} {
			if strings.Contains(text, bare) {
				t.Errorf("a secret stands in %s", where)
			}
		}
	}
}

func TestASecretIsEncryptedAnewWhenTheSigningKeyRotates(t *testing.T) {
	in, r := install(t), receive(t, always(200))
	w := in.create(t, r.URL)
	next := []byte(strings.Repeat("n", 32))
	both := in.node(dialguard.Loopback, next, signingKey)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); testkit.Report(t, both.Lead(ctx, 1)) }()
	only := in.node(dialguard.Loopback, next)
	redistest.Eventually(t, "the next key alone is enough", func() bool {
		_, err := only.Test(t.Context(), operator, game, w.ID)
		return err == nil
	})
	cancel()
	<-ended
	testkit.Fails(in.Test(t.Context(), operator, game, w.ID))(t, apierror.VersionConflict, "the former key alone")
}

func TestWhoMayManageWebhooks(t *testing.T) {
	in, r := install(t), receive(t, always(200))
	w := in.create(t, r.URL)
	server := principal.Caller{Role: principal.Server, GameID: game}
	for name, test := range map[string]struct {
		caller principal.Caller
		want   *apierror.Error
	}{
		"a player":       {principal.Caller{Role: principal.Player, GameID: game, UserID: 7}, apierror.Forbidden},
		"another server": {principal.Caller{Role: principal.Server, GameID: game + 1}, apierror.GameNotFound},
	} {
		_, err1 := in.Create(t.Context(), test.caller, game, webhooks.Input{URL: r.URL, Kinds: []string{"rooms"}})
		_, err2 := in.List(t.Context(), test.caller, game)
		_, err3 := in.Get(t.Context(), test.caller, game, w.ID)
		_, err4 := in.Patch(t.Context(), test.caller, game, w.ID, webhooks.PatchInput{})
		_, err5 := in.RotateSecret(t.Context(), test.caller, game, w.ID)
		_, err6 := in.Test(t.Context(), test.caller, game, w.ID)
		_, err7 := in.Deliveries(t.Context(), test.caller, game, w.ID, "")
		_, err8 := in.Replay(t.Context(), test.caller, game, w.ID, webhooks.Replay{Parked: true})
		err9 := in.Delete(t.Context(), test.caller, game, w.ID)
		for i, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8, err9} {
			if !errors.Is(err, test.want) {
				t.Errorf("%s, call %d: %v", name, i+1, err)
			}
		}
	}
	testkit.Must(in.Patch(t.Context(), server, game, w.ID, webhooks.PatchInput{Description: new("mine")}))(t)
	testkit.Fails(in.Patch(t.Context(), server, game, w.ID, webhooks.PatchInput{Version: 1}))(
		t, apierror.VersionConflict, "a change of an older version")
	for range 7 {
		in.create(t, r.URL)
	}
	testkit.Fails(in.Create(t.Context(), server, game, webhooks.Input{URL: r.URL, Kinds: []string{"rooms"}}))(
		t, apierror.LimitReached, "a ninth webhook")
	if in.active.Load() != 8 {
		t.Errorf("%d active ones", in.active.Load())
	}
	testkit.Check(t, in.Delete(t.Context(), server, game, w.ID))
	testkit.Fails(in.Get(t.Context(), server, game, w.ID))(t, apierror.WebhookNotFound, "a webhook that was removed")
	left := in.db.Client.Keys(t.Context(), "{s:3}:webhook:"+w.ID+"*").Val()
	if len(left) > 0 || in.active.Load() != 7 {
		t.Errorf("%v is left, %d active ones", left, in.active.Load())
	}
}
