package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/cmd/parlor/referee"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// A race outlives its referees: two at once, then the first is stopped in the middle, then the
// second, and a third one ends it. Nothing of the race was in their memory only.
func TestARaceOutlivesItsReferees(t *testing.T) {
	n := newServingNode(t, redistest.StartForTest(t, "--appendonly", "yes"))
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err := n.run(ctx, func(public string) companions {
		return companions{func(ctx context.Context) error {
			defer stop()
			example, err := n.seed(ctx)
			if err != nil {
				return err
			}
			return newRaceTest(ctx, n, example, "http://"+public).play(t)
		}}
	})
	testkit.Check(t, err)
}

// raceTest is a race of the first two players of the example.
type raceTest struct {
	ctx    context.Context
	n      *node
	url    string
	game   seedResult
	tokens []string
	roomID string
}

func newRaceTest(ctx context.Context, n *node, example seedResult, url string) *raceTest {
	return &raceTest{ctx: ctx, n: n, url: url, game: example}
}

// startReferee returns a function that stops the referee and waits for its end.
func (r *raceTest) startReferee(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- referee.Run(ctx, referee.Options{
			NodeURL: r.url, ServerKey: r.game.serverKey, Log: slog.New(slog.DiscardHandler),
		})
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("a referee ended with %v", err)
		}
	}
}

func (r *raceTest) play(t *testing.T) error {
	for _, p := range r.game.players[:2] {
		token, err := r.n.auth.IssueAccessToken(r.ctx, r.game.game.ID, p.id, time.Hour)
		if err != nil {
			return err
		}
		r.tokens = append(r.tokens, token)
	}
	stopFirst := r.startReferee(t)
	var room struct {
		RoomID string `json:"roomId"`
		Status string `json:"status"`
		Shared struct {
			Value map[string]struct {
				Steps int `json:"steps"`
				Moves int `json:"moves"`
			} `json:"value"`
		} `json:"shared"`
	}
	create := fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":"2.5","maxPlayers":2,"autoStart":true,`+
		`"metadata":{"game":"race"}}`, r.game.stakeTokenID)
	if _, err := r.post("create", r.tokens[0], create, &room); err != nil {
		return err
	}
	r.roomID = room.RoomID
	if _, err := r.post("join", r.tokens[1], `{"roomId":"`+r.roomID+`"}`, &room); err != nil {
		return err
	}
	heard := 0 // rolls that were answered
	roll := func(times int) {
		for range times {
			heard += r.rollUntilAnswered(t, heard%2)
		}
	}
	roll(2)
	stopSecond := r.startReferee(t)
	roll(2)
	stopFirst()
	roll(2)
	stopSecond()
	stopThird := r.startReferee(t)
	defer stopThird()
	for room.Status != "FINISHED" && r.ctx.Err() == nil {
		roll(1)
		path := "/api/v1/game-session/get?roomId=" + r.roomID
		if _, err := r.request(http.MethodGet, path, r.tokens[0], "", &room); err != nil {
			return err
		}
	}
	moves, most := 0, 0
	for _, runner := range room.Shared.Value {
		moves, most = moves+runner.Moves, max(most, runner.Steps)
	}
	if most != referee.FinishLine || moves < heard {
		t.Errorf("%d rolls were answered, and the race ended with %+v", heard, room.Shared.Value)
	}
	return r.ctx.Err()
}

// rollUntilAnswered rolls for a player, again while no referee is there, or it is too early. It
// returns how many rolls were answered: 0 when the race is over.
func (r *raceTest) rollUntilAnswered(t *testing.T, player int) int {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		var answer struct {
			Payload  struct{ Steps int } `json:"payload"`
			Code     string              `json:"code"`
			GameCode string              `json:"gameCode"`
		}
		body := `{"roomId":"` + r.roomID + `","op":"race.roll","payload":{},"timeoutMs":1000}`
		status, err := r.post("call", r.tokens[player], body, &answer)
		switch {
		case err != nil:
			t.Error(err)
			return 0
		case status == http.StatusOK:
			return 1
		case answer.GameCode == "race_over" || answer.Code == "room_closed" || answer.Code == "not_started":
			return 0
		}
		select {
		case <-ticker.C:
		case <-r.ctx.Done():
			t.Errorf("the last answer is %d %+v", status, answer)
			return 0
		}
	}
}

func (r *raceTest) post(verb, token, body string, out any) (status int, err error) {
	return r.request(http.MethodPost, "/api/v1/game-session/"+verb, token, body, out)
}

func (r *raceTest) request(method, path, token, body string, out any) (status int, err error) {
	request, err := http.NewRequestWithContext(r.ctx, method, r.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, wire.Unmarshal(text, out)
}

// The server that init writes in Go is built from what the program brings, and decides a game on a
// node of dev.
func TestTheServerInGoThatInitWritesPlays(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "my-game")
	must(t, "init", folder, "--server", "go")
	program := filepath.Join(t.TempDir(), "server")
	build := exec.Command("go", "build", "-mod=readonly", "-o", program, ".")
	build.Dir = filepath.Join(folder, "server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dev := startDev(t, nil, "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0")
	value := func(name string) string {
		for _, line := range dev.lines {
			if _, rest, found := strings.Cut(line, " "+name+"="); found {
				return strings.Fields(rest)[0]
			}
		}
		t.Fatalf("dev prints no %s", name)
		return ""
	}
	server := exec.Command(program)
	server.Env = []string{"URL=" + value("URL"), "SERVER_KEY=" + value("SERVER_KEY")}
	redistest.EndWithParent(server)
	testkit.Check(t, server.Start())
	defer func() {
		testkit.Check(t, server.Process.Signal(os.Interrupt))
		testkit.Check(t, server.Wait())
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := &raceTest{ctx: ctx, url: value("URL"), tokens: []string{value("ADA_TOKEN"), value("BOB_TOKEN")}}
	var room struct {
		RoomID  string                   `json:"roomId"`
		Status  string                   `json:"status"`
		Results []struct{ UserID int64 } `json:"results"`
	}
	testkit.Must(r.post("create", r.tokens[0], `{"maxPlayers":2,"autoStart":true}`, &room))(t)
	roomID := room.RoomID
	testkit.Must(r.post("join", r.tokens[1], `{"roomId":"`+roomID+`"}`, &room))(t)
	for taken := 0; taken < 12; {
		var answer struct{ Code, GameCode string }
		body := `{"roomId":"` + roomID + `","op":"take","payload":{"stones":3}}`
		switch testkit.Must(r.post("call", r.tokens[taken/3%2], body, &answer))(t); {
		case answer.Code == "":
			taken += 3
		case answer.Code != "no_server":
			t.Fatalf("after %d stones: %+v", taken, answer)
		}
		testkit.Check(t, ctx.Err())
	}
	testkit.Must(r.request(http.MethodGet, "/api/v1/game-session/get?roomId="+roomID, r.tokens[0], "", &room))(t)
	if room.Status != "FINISHED" || len(room.Results) != 2 {
		t.Errorf("the room is %+v", room)
	}
	dev.stop(t)
}
