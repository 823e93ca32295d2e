package chaos

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	parlor "github.com/parlor-games/parlor/sdk/go"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// sleepingServer is a game's server that no socket reaches: it is woken by webhooks. It ends a room
// when it hears that the room has started.
type sleepingServer struct {
	t      *testing.T
	in     *installation
	secret string
	seats  func(roomID string) []int64

	isDown  atomic.Bool
	refused atomic.Int64

	mu       sync.Mutex
	ids      map[string]bool     // of the messages that were handled
	heard    map[string][]string // types of the events of a room, as they came first
	seqs     map[string]int64    // of the last one of a room
	repeated int
}

func (s *sleepingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.isDown.Load() {
		s.refused.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = s.handle(r, body)
	}
	if err != nil {
		s.t.Error(err)
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (s *sleepingServer) handle(r *http.Request, body []byte) error {
	hook, err := parlor.VerifyWebhook(r.Header, body, s.secret)
	if err != nil {
		return err
	}
	e, err := hook.Event()
	if err != nil {
		return fmt.Errorf("%w: %s", err, body)
	}
	s.mu.Lock()
	isKnown := s.ids[hook.ID]
	s.mu.Unlock()
	if e.Type == "room.started" && !isKnown { // it may be ended twice: the key is that of the room
		var results []parlor.Result
		for i, player := range s.seats(e.RoomID) {
			results = append(results, parlor.Result{UserID: player, Place: i + 1})
		}
		answer, _ := s.in.send(r.Context(), 0, "/api/v1/game-session/finish", s.in.serverKey,
			map[string]any{"roomId": e.RoomID, "results": results}, "finish-"+e.RoomID)
		if answer.Status != http.StatusOK {
			return fmt.Errorf("finish returned %s", answer)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[hook.ID] {
		s.repeated++
		return nil
	}
	s.ids[hook.ID] = true
	if e.Seq <= s.seqs[e.RoomID] {
		return fmt.Errorf("room %s: event %d came after event %d", e.RoomID, e.Seq, s.seqs[e.RoomID])
	}
	s.seqs[e.RoomID] = e.Seq
	s.heard[e.RoomID] = append(s.heard[e.RoomID], e.Type)
	return nil
}

// TestWebhooksAloneEndEveryRoomAfterTheirTargetWasDown lets players of three nodes start rooms,
// which a server ends that is woken by webhooks. While it is down, the node that delivers is
// killed. Once it is back it hears of each room in order, and each room ends once.
//
//	go test ./tests/chaos -run WebhooksAlone -v        # down for some seconds
//	go test ./tests/chaos -run WebhooksAlone -v -long  # 1,000 rooms, down for ten minutes
func TestWebhooksAloneEndEveryRoomAfterTheirTargetWasDown(t *testing.T) {
	t.Parallel()
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "everysec")
	total, down := cmp.Or(*serverRooms, pick(100, 1_000)), pick(4*time.Second, 10*time.Minute)
	const seatsOfRoom = 2
	tables := min(total, 10)
	in := newInstallation(t, store.URL(), 3, seatsOfRoom*tables, nil, "PARLOR_WEBHOOK_NETWORKS=127.0.0.0/8")
	server := &sleepingServer{
		t: t, in: in, ids: map[string]bool{}, heard: map[string][]string{}, seqs: map[string]int64{},
	}
	seated := sync.Map{} // room → players
	server.seats = func(roomID string) []int64 {
		players, _ := seated.Load(roomID)
		list, _ := players.([]int64)
		return list
	}
	target := httptest.NewServer(server)
	t.Cleanup(target.Close)
	game := fmt.Sprintf("/api/v1/admin/games/%d", gameID)
	in.node(0).Must(t, 200, "PATCH", game, nodetest.AdminKey, map[string]any{
		"settings": map[string]any{"matchTimeoutSeconds": 7200, "idleTimeoutSeconds": 7200},
	})
	made := in.node(0).Must(t, 201, "POST", game+"/webhooks", nodetest.AdminKey, map[string]any{
		"url": target.URL, "kinds": []string{"rooms"}, "active": true,
	})
	server.secret, _ = made.Body["secret"].(string)

	play := func(first, last int) {
		var players sync.WaitGroup
		var next atomic.Int64
		next.Store(int64(first))
		for table := range tables {
			seats := in.players[table*seatsOfRoom : (table+1)*seatsOfRoom]
			players.Go(func() {
				for number := next.Add(1); number <= int64(last); number = next.Add(1) {
					testkit.Report(t, in.startForWebhook(t.Context(), int(number), seats, &seated))
				}
			})
		}
		players.Wait()
	}
	play(0, total/2)
	server.isDown.Store(true)
	began := time.Now()
	play(total/2, total)
	redistest.Eventually(t, "a delivery has failed", func() bool { return server.refused.Load() > 0 })
	for i := range in.nodes { // one of them delivers
		in.replace(i)
	}
	waitFor(t, down-min(down, time.Since(began)))
	server.isDown.Store(false)

	testkit.Check(t, redistest.Poll(pick(2*time.Minute, time.Hour), func() error {
		server.mu.Lock()
		defer server.mu.Unlock()
		ended := 0
		for _, types := range server.heard {
			if types[len(types)-1] == "room.finished" {
				ended++
			}
		}
		if ended < total && !t.Failed() {
			return fmt.Errorf("the server has heard %d ends of %d", ended, total)
		}
		return nil
	}))
	server.mu.Lock()
	defer server.mu.Unlock()
	for _, roomID := range slices.Sorted(maps.Keys(server.heard)) {
		if !slices.Equal(server.heard[roomID], []string{"room.created", "room.started", "room.finished"}) {
			t.Errorf("room %s: the server heard %v", roomID, server.heard[roomID])
		}
		if status := in.room(roomID)["status"]; status != "FINISHED" {
			t.Errorf("room %s is %v", roomID, status)
		}
	}
	report(t, "%d rooms ended by webhooks alone; the target was down for %v, and refused %d requests; all nodes were "+
		"killed meanwhile; messages that came again: %d", len(server.heard), down, server.refused.Load(), server.repeated)
}

// startForWebhook lets players open a room, fill it and start it.
func (in *installation) startForWebhook(
	ctx context.Context, number int, seats []httpPlayer, seated *sync.Map,
) error {
	roomID := ""
	for i, verb := range []string{"create", "join", "start"} {
		body := map[string]any{"roomId": roomID}
		if verb == "create" {
			body = map[string]any{"maxPlayers": len(seats)}
			if number%2 == 0 {
				body["entryTokenId"], body["roomEntry"], body["rakeBps"] = in.tokenID, 0.01, 0
			}
		}
		r, _ := in.send(ctx, number, "/api/v1/game-session/"+verb, seats[i%len(seats)].token, body,
			fmt.Sprintf("%s-%d", verb, number))
		if r.Status >= 300 {
			return fmt.Errorf("%s of room %d returned %s", verb, number, r)
		}
		if verb == "create" {
			roomID, _ = r.Body["roomId"].(string)
			players := make([]int64, len(seats))
			for n, p := range seats {
				players[n] = p.id
			}
			seated.Store(roomID, players)
		}
	}
	return ctx.Err()
}
