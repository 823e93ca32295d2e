package handlers_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// refusedFixture is a node whose store can refuse, the requests that reach it, and who sends them.
func refusedFixture(t *testing.T) (f *fixture, store *redistest.ErrorProxy, requests []baseRequest) {
	t.Helper()
	server := redistest.StartForTest(t)
	store = redistest.StartErrorProxy(t, server)
	db := testkit.Must(redisdb.Open(store.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	f, ann, fill := newRoomFixtureOn(t, newFixtureOn(t, db, nil).createGame(), "/tournaments")
	bearers := map[string]string{"ann": ann.token, "server": f.serverKey, "operator": adminKey}
	add := func(operation, path, as, body string) {
		method, _, _ := strings.Cut(operation, " ")
		requests = append(requests, baseRequest{method, fill.Replace(path), bearers[as], fill.Replace(body)})
	}
	covered := map[string]bool{}
	for _, v := range validBodies {
		_, path, _ := strings.Cut(v.operation, " ")
		add(v.operation, path, v.as, v.body)
	}
	for operation, base := range queryBases {
		covered[operation] = true
		add(operation, base.path, base.as, base.body)
	}
	for _, operation := range operations() { // the others need nothing but their path
		method, path, _ := strings.Cut(operation, " ")
		if (method == "GET" || method == "DELETE") && !covered[operation] {
			path = strings.NewReplacer("{gameId}", "<game>", "{userId}", "<ann>", "{tokenId}", "GOLD", "{assetId}", "<asset>",
				"{board}", "top", "{tournamentId}", "<tour>", "{slot}", "main", "{keyId}", "x",
				"{webhookId}", "<webhook>").Replace(path)
			if pathParameter.MatchString(path) {
				t.Fatalf("%s has a parameter that this test does not know", operation)
			}
			add(operation, path, callerOf(operation), "")
		}
	}
	return f, store, requests
}

// callerOf returns who may send a request.
func callerOf(operation string) string {
	if strings.Contains(operation, "/admin/") {
		return "operator"
	}
	return "ann"
}

type baseRequest struct{ method, path, bearer, body string }

// Whatever a store refuses with, and whether it refuses everything or what scripts do alone, a
// request is never an internal error, and is not half done.
func TestNoErrorOfTheStoreIsInternal(t *testing.T) {
	everything := func(string) bool { return true }
	modes := map[string]func(string) bool{"every command": everything, "every script": redistest.IsScript}
	// The trail has what staff tried, as soon as the store takes it; an id may be given away in vain.
	unrelated := []string{":trail:", ":next"}
	for mode, applies := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f, store, requests := refusedFixture(t)
			before := f.storeContent(unrelated...)
			for i, text := range oneOfEach(redistest.ServerErrors) {
				store.Refuse(text, applies)
				f.sendAll(requests, func(r baseRequest, resp *httpResult) {
					if resp.status == 500 {
						t.Errorf("%s: %s %s returns %s", text, r.method, r.path, resp.raw)
					}
				}, fmt.Sprint("refused-", i))
				store.Refuse("", nil)
				if changed := before.changes(f.storeContent(unrelated...)); changed != "" {
					t.Fatalf("%s: a refused request has changed the store: %s", text, changed)
				}
			}
		})
	}
}

// oneOfEach returns one error for each first word, and all that have none of their own.
func oneOfEach(texts []string) (list []string) {
	seen := map[string]bool{}
	for _, text := range texts {
		if word, _, _ := strings.Cut(text, " "); word == "ERR" || !seen[word] {
			seen[word] = true
			list = append(list, text)
		}
	}
	return list
}

// sendAll sends requests, a few at a time, and calls check with each response, one after the other.
func (f *fixture) sendAll(requests []baseRequest, check func(baseRequest, *httpResult), key string) {
	f.t.Helper()
	var mu sync.Mutex
	var sending sync.WaitGroup
	slots := make(chan struct{}, 32)
	for i, r := range requests {
		slots <- struct{}{}
		sending.Go(func() {
			defer func() { <-slots }()
			resp := f.send(r.method, r.path, r.bearer, r.body, "Idempotency-Key", fmt.Sprint(key, "-", i))
			mu.Lock()
			defer mu.Unlock()
			check(r, resp)
		})
	}
	sending.Wait()
}
