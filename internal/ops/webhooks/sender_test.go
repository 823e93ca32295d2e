package webhooks_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/dialguard"
	"github.com/parlor-games/parlor/internal/base/dialguard/dialguardtest"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// A proxy of the environment would connect to whatever address it is asked for.
func TestNoProxyIsUsed(t *testing.T) {
	in, r, proxy := install(t), receive(t, always(200)), receive(t, always(200))
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		t.Setenv(name, "")
	}
	in.dialer = &net.Dialer{Resolver: dialguardtest.ResolverTo(func() string { return "127.0.0.1" })}
	node := in.node(dialguard.Loopback, signingKey)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(r.URL, "http://"))
	w := in.create(t, "http://hook.example:"+port+"/")
	if a := testkit.Must(node.Test(t.Context(), operator, game, w.ID))(t); a.Error != nil || proxy.asked() != 0 {
		t.Errorf("%+v, %d requests to the proxy", a, proxy.asked())
	}
}

// What is shown of an attempt has no part of the address, and is short whatever the target sends.
func TestAnErrorIsShortAndHasNoAddress(t *testing.T) {
	in := install(t)
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, "HTTP/1.1 "+strings.Repeat("no\xff", 1000)+"\r\n\r\n")
			_ = conn.Close()
		}
	}()
	refused := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	_ = refused.Close()
	for _, address := range []string{listener.Addr().String(), refused.Addr().String()} {
		w := in.create(t, "http://"+address+"/?token=s3cret")
		a := testkit.Must(in.Test(t.Context(), operator, game, w.ID))(t)
		if a.Error == nil || len(*a.Error) > 220 || strings.Contains(*a.Error, "s3cret") {
			t.Errorf("the error is %v", a)
		}
	}
}

// The keys of a node change while it delivers.
func TestSecretsAreEncryptedAnewWithoutARestart(t *testing.T) {
	in, r := install(t), receive(t, always(200))
	w := in.create(t, r.URL)
	next := []byte(strings.Repeat("n", 32))
	node := in.node(dialguard.Loopback, signingKey)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); testkit.Report(t, node.Lead(ctx, 1)) }()
	defer func() { cancel(); <-ended }()
	in.happen(t, 0, "a")
	r.want(t, 1)
	node.SetSigningKeys([][]byte{next, signingKey})
	only := in.node(dialguard.Loopback, next)
	redistest.Eventually(t, "the next key alone is enough", func() bool {
		_, err := only.Test(t.Context(), operator, game, w.ID)
		return err == nil
	})
}

// A secret that was rotated between two keys signs for its whole day.
func TestAFormerSecretIsEncryptedAnewToo(t *testing.T) {
	in, r := install(t), receive(t, always(200))
	w := in.create(t, r.URL)
	next := []byte(strings.Repeat("n", 32))
	both, only := in.node(dialguard.Loopback, next, signingKey), in.node(dialguard.Loopback, next)
	testkit.Must(both.RotateSecret(t.Context(), operator, game, w.ID))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); testkit.Report(t, both.Lead(ctx, 1)) }()
	defer func() { cancel(); <-ended }()
	redistest.Eventually(t, "the next key alone signs with both", func() bool {
		testkit.Must(only.Test(t.Context(), operator, game, w.ID))(t)
		r.mu.Lock()
		defer r.mu.Unlock()
		return strings.Contains(r.got[len(r.got)-1].header.Get("webhook-signature"), " ")
	})
}

// What a leader has under way when a webhook is removed leaves nothing behind.
func TestNothingIsLeftOfAWebhookThatWasRemovedWhileItDelivered(t *testing.T) {
	in := install(t)
	blocked := make(chan struct{})
	r := receive(t, func(delivery) int { <-blocked; return 200 })
	w := in.create(t, r.URL)
	in.lead(t)
	in.happen(t, 0, rooms(5, 1)...)
	redistest.Eventually(t, "a request is under way", func() bool { return r.asked() > 0 })
	testkit.Check(t, in.Delete(t.Context(), operator, game, w.ID))
	close(blocked)
	redistest.Eventually(t, "the leader has noticed it", func() bool {
		return in.db.Client.SCard(t.Context(), keys.WebhookGames()).Val() == 0
	})
	if left := in.db.Client.Exists(t.Context(), keys.WebhookState(game, w.ID), keys.WebhookAttempts(game, w.ID)).Val(); left != 0 {
		t.Errorf("%d keys are left", left)
	}
}
