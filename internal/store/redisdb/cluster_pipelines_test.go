package redisdb_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// servedOnce are hooks of the masters of a Cluster: the first pipeline gets what serve makes of it,
// later ones go on.
type servedOnce struct {
	served *atomic.Bool
	serve  func(ctx context.Context, commands []redis.Cmder, next redis.ProcessPipelineHook) error
}

func (servedOnce) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (servedOnce) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h servedOnce) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if h.served.Swap(true) {
			return next(ctx, commands)
		}
		return h.serve(ctx, commands, next)
	}
}

// openClusterThat opens a Cluster whose masters serve one pipeline in their own way.
func openClusterThat(
	t *testing.T, serve func(ctx context.Context, commands []redis.Cmder, next redis.ProcessPipelineHook) error,
) *redisdb.DB {
	t.Helper()
	url, servers := testkit.Must2(redistest.StartCluster())(t)
	t.Cleanup(func() {
		for _, server := range servers {
			server.Remove()
		}
	})
	db := openServer(t, url)
	db.Client.(*redis.ClusterClient).OnNewNode(func(master *redis.Client) {
		master.AddHook(servedOnce{new(atomic.Bool), serve})
	})
	return db
}

func TestWhatIsRedirectedAndLostInOneBatchIsSentAgainOnce(t *testing.T) {
	db := openClusterThat(t, func(_ context.Context, commands []redis.Cmder, _ redis.ProcessPipelineHook) error {
		for i, command := range commands {
			command.SetErr(io.EOF)
			if i == 0 {
				command.SetErr(redis.ErrClosed)
			}
		}
		return io.EOF
	})
	counts := make([]*redis.IntCmd, 200)
	testkit.Must(db.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range counts {
			counts[i] = p.Incr(t.Context(), "{"+strconv.Itoa(i)+"}:count")
		}
		return nil
	}))(t)
	for i, count := range counts {
		if count.Val() != 1 || count.Err() != nil {
			t.Fatalf("command %d has run %d times, %v", i, count.Val(), count.Err())
		}
	}
}

func TestAReadBehindAScriptThatIsSentAgainIsSentAgainToo(t *testing.T) {
	db := openClusterThat(t, func(ctx context.Context, commands []redis.Cmder, next redis.ProcessPipelineHook) error {
		if err := next(ctx, commands[1:]); err != nil {
			return err
		}
		commands[0].SetErr(errors.New("TRYAGAIN Multiple keys request during rehashing of slot"))
		return commands[0].Err()
	})
	const source = "return redis.call('HSET', KEYS[1], 'seats', ARGV[1])"
	run, read := db.AutoPipelined.EvalThenHGetAll(t.Context(), source, []string{"{r}:room"}, []any{"2"}, "{r}:room")
	if value, err := run.Result(); value != int64(1) || err != nil {
		t.Fatalf("the script returned %v, %v", value, err)
	}
	if fields, err := read.Result(); redisdb.Hash(fields).Text("seats") != "2" || err != nil {
		t.Errorf("the read behind it shows %q, %v", fields, err)
	}
}

// A command of go-redis keeps the slot that it was sent to first.
func TestAPublicationGoesToTheMasterOfEachChannel(t *testing.T) {
	db := openClusterThat(t, func(ctx context.Context, commands []redis.Cmder, next redis.ProcessPipelineHook) error {
		return next(ctx, commands)
	})
	done := make(chan error, 1)
	p := &redisdb.Publication{Message: []byte("m"), Done: func(err error) { done <- err }}
	for _, p.Channel = range []string{"{a}:events", "{b}:events", "{c}:events", "{d}:events"} {
		subscriber := db.Client.SSubscribe(t.Context(), p.Channel)
		defer func() { _ = subscriber.Close() }()
		testkit.Must(subscriber.Receive(t.Context()))(t)
		testkit.Check(t, db.Publish(t.Context(), p))
		testkit.Report(t, <-done, "%s", p.Channel)
		if m, err := subscriber.ReceiveMessage(t.Context()); err != nil || m.Channel != p.Channel {
			t.Errorf("%s got %v, %v", p.Channel, m, err)
		}
	}
	cluster := db.Client.(*redis.ClusterClient)
	testkit.Check(t, cluster.ForEachMaster(t.Context(), func(ctx context.Context, master *redis.Client) error {
		text, err := master.Info(ctx, "errorstats").Result()
		if strings.Contains(text, "MOVED") {
			t.Errorf("a master has sent a publication to another one: %s", text)
		}
		return err
	}))
}
