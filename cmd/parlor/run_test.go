package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/logs"
	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/spf13/cobra"
)

// newServingNode returns a node as serve has it, which does not run yet.
func newServingNode(t *testing.T, store *redistest.Server) *node {
	t.Helper()
	setRequired(t, store.URL())
	s := testkit.Must(loadSettings(settingFlags(&cobra.Command{}), config.ModeServe))(t)
	db := testkit.Must(openStore(s))(t)
	t.Cleanup(func() { _ = db.Close() })
	handler, storeErrors := logs.NewStoreErrors(slog.DiscardHandler)
	return testkit.Must(newNode(db, s, config.ModeServe, slog.New(handler), storeErrors))(t)
}

// The store of the node meets the requirements at the second try only, a second after the node
// listens. What dev prints meanwhile would be pasted too early.
func TestTheAddressOfANodeIsToldWhenItServes(t *testing.T) {
	n := newServingNode(t, redistest.StartForTest(t, "--appendonly", "yes"))
	tries := 0
	n.monitor.BeforeReady(func(ctx context.Context) error {
		if tries++; tries == 1 {
			return errors.New("not yet")
		}
		return n.history.Start(ctx)
	})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	status := 0
	err := n.run(ctx, func(public string) companions {
		defer stop()
		response, err := http.Get("http://" + public + "/api/v1/me")
		if err != nil {
			t.Error(err)
			return nil
		}
		_ = response.Body.Close()
		status = response.StatusCode
		return nil
	})
	if err != nil || status != http.StatusUnauthorized {
		t.Errorf("the first request without a token gets %d, and the node ends with %v", status, err)
	}
}
