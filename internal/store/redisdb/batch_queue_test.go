package redisdb_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// heldPipelines holds back each pipeline until it receives from release, and counts their commands.
type heldPipelines struct {
	started chan int // the number of commands of each pipeline
	release chan struct{}
}

func (heldPipelines) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (heldPipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h heldPipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		h.started <- len(commands)
		<-h.release
		return next(ctx, commands)
	}
}

// openHeld returns a store of one server that has a hash "{q}:hash" with the field n of the value n
// for each n below 10, and whose pipelines are held back.
func openHeld(t *testing.T) (*redisdb.DB, heldPipelines) {
	t.Helper()
	server := testkit.Must(redistest.Start())(t)
	t.Cleanup(server.Remove)
	db := openServer(t, server.URL())
	for n := range 10 {
		testkit.Check(t, db.Client.HSet(t.Context(), "{q}:hash", strconv.Itoa(n), n).Err())
	}
	testkit.Must(db.AutoPipelined.HGet(t.Context(), "{q}:hash", "0").Result())(t) // opens the connection
	held := heldPipelines{make(chan int, 100), make(chan struct{})}
	db.Client.AddHook(held)
	return db, held
}

func TestCommandsThatWaitShareARoundTrip(t *testing.T) {
	db, held := openHeld(t)
	var replies []redisdb.Pending[string]
	queue := func(count int) {
		for range count {
			field := strconv.Itoa(len(replies) % 10)
			replies = append(replies, db.AutoPipelined.HGet(t.Context(), "{q}:hash", field))
		}
	}
	queue(1)
	if first := <-held.started; first != 1 {
		t.Errorf("the first pipeline has %d commands, want 1", first)
	}
	queue(1_500)
	close(held.release)
	for i, reply := range replies {
		if got, err := reply.Result(); got != strconv.Itoa(i%10) || err != nil {
			t.Fatalf("command %d: %q, %v", i, got, err)
		}
	}
	var sizes []int
	for len(held.started) > 0 {
		sizes = append(sizes, <-held.started)
	}
	if !slices.Equal(sizes, []int{1_000, 500}) {
		t.Errorf("the pipelines after it have %d commands, want 1000 and 500", sizes)
	}
}

func TestAFullQueueRefusesCommandsAndRecovers(t *testing.T) {
	db, held := openHeld(t)
	get := func() redisdb.Pending[string] { return db.AutoPipelined.HGet(t.Context(), "{q}:hash", "7") }
	sent := get()
	<-held.started
	const maxQueued = 20_000
	waiting := make([]redisdb.Pending[string], maxQueued)
	for i := range waiting {
		waiting[i] = get()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := db.AutoPipelined.HGet(ctx, "{q}:hash", "7").Result()
	if !errors.Is(err, redis.ErrAutoPipelineQueueFull) ||
		!errors.Is(redisdb.WrapError("x", err), apierror.StoreUnavailable) {
		t.Errorf("one command too many: %v", err)
	}
	close(held.release)
	for _, reply := range append(waiting, sent) {
		if got, err := reply.Result(); got != "7" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if got, err := get().Result(); got != "7" || err != nil {
		t.Errorf("a command after it: %q, %v", got, err)
	}
}

func TestAWaitEndsBeforeItsCommandIsSent(t *testing.T) {
	db, held := openHeld(t)
	sent := db.AutoPipelined.HGet(t.Context(), "{q}:hash", "1")
	<-held.started
	ctx, cancel := context.WithCancel(t.Context())
	waiting := db.AutoPipelined.HGet(ctx, "{q}:hash", "2")
	cancel()
	testkit.Fails(waiting.Result())(t, context.Canceled, "a wait whose context ended")
	close(held.release)
	if got, err := sent.Result(); got != "1" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAPublicationIsDoneWhenTheServerHasIt(t *testing.T) {
	db, held := openHeld(t)
	direct := redis.NewClient(db.Client.(*redis.Client).Options()) // its pipelines are not held back
	defer func() { _ = direct.Close() }()
	subscription := direct.Subscribe(t.Context(), "{q}:channel")
	defer func() { _ = subscription.Close() }()
	testkit.Must(subscription.Receive(t.Context()))(t)
	done := make(chan error, 2)
	publish := func(message string) {
		t.Helper()
		p := &redisdb.Publication{
			Channel: "{q}:channel", Message: []byte(message), Done: func(err error) { done <- err },
		}
		testkit.Check(t, db.Publish(t.Context(), p))
	}
	publish("first")
	<-held.started
	publish("second")
	if len(done) != 0 {
		t.Error("a publication is done before it was sent")
	}
	close(held.release)
	for _, want := range []string{"first", "second"} {
		testkit.Report(t, <-done)
		if m, err := subscription.ReceiveMessage(t.Context()); err != nil || m.Payload != want {
			t.Errorf("got %v, %v; want %s", m, err, want)
		}
	}
}

func TestAFullQueueRefusesAPublication(t *testing.T) {
	db, held := openHeld(t)
	sent := db.AutoPipelined.HGet(t.Context(), "{q}:hash", "1")
	<-held.started
	publish := func(done func(error)) error {
		return db.Publish(t.Context(), &redisdb.Publication{Channel: "{q}:channel", Done: done})
	}
	const maxQueued = 20_000
	done := make(chan error, maxQueued)
	for range maxQueued {
		testkit.Check(t, publish(func(err error) { done <- err }))
	}
	err := publish(func(error) { t.Error("a publication that was not queued is done") })
	testkit.WantError(t, err, redis.ErrAutoPipelineQueueFull, "one publication too many")
	close(held.release)
	for range maxQueued {
		testkit.Check(t, <-done)
	}
	testkit.Report(t, testkit.ErrorOf(sent.Result()))
}

func TestAClosedQueueSendsWhatWaitsAndRefusesTheRest(t *testing.T) {
	server := testkit.Must(redistest.Start())(t)
	t.Cleanup(server.Remove)
	db := openServer(t, server.URL())
	db.RequireReplicas(1)
	before := runtime.NumGoroutine()
	if _, err := db.AutoPipelined.HGet(t.Context(), "{q}:hash", "1").Result(); !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	if err := request(t.Context(), db, "q"); !errors.Is(err, apierror.OutcomeUnknown) { // there is no replica
		t.Fatal(err)
	}
	_ = db.Close()
	redistest.Eventually(t, "the goroutines of both queues have ended", func() bool {
		return runtime.NumGoroutine() <= before
	})
	for range 3 {
		testkit.Fails(db.AutoPipelined.HGet(t.Context(), "{q}:hash", "1").Result())(
			t, redis.ErrClosed, "a command after the end")
	}
	done := make(chan error, 1)
	p := &redisdb.Publication{Channel: "{q}:channel", Done: func(err error) { done <- err }}
	testkit.Check(t, db.Publish(t.Context(), p))
	testkit.WantError(t, <-done, redis.ErrClosed, "a publication after the end")
}
