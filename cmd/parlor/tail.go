package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/spf13/cobra"
)

func tailCommand() *cobra.Command {
	t := tail{out: json.NewEncoder(io.Discard)}
	c := &cobra.Command{
		Use: "tail", Short: "Print the events of a room as they happen, one JSON object a line", Args: cobra.NoArgs,
		Long: "tail follows a room over the WebSocket of a node, as a game's client does. It begins with the room's first event, or with a\n" +
			"room.snapshot where that is gone; it comes back by itself when the connection is lost, and misses nothing meanwhile.",
		Example: "  parlor tail --room $ROOM --token $ADA_TOKEN",
		RunE: func(c *cobra.Command, _ []string) error {
			if t.room == "" || t.token == "" {
				return errors.New("tail needs --room, and --token or PARLOR_TOKEN: a player's access token")
			}
			t.out = json.NewEncoder(c.OutOrStdout())
			t.out.SetEscapeHTML(false)
			t.problems = c.ErrOrStderr()
			err := t.follow(c.Context())
			if c.Context().Err() != nil {
				return nil // told to stop
			}
			return err
		},
	}
	c.Flags().StringVar(&t.room, "room", "", "the room, by id or code")
	c.Flags().StringVar(&t.url, "url", "http://127.0.0.1:8080", "a node, or the balancer in front of many")
	c.Flags().StringVar(&t.token, "token", os.Getenv("PARLOR_TOKEN"), "the access token of a player who may see the room")
	c.Flags().Lookup("token").DefValue = "" // help tells no secret
	return c
}

// tail follows one room.
type tail struct {
	room, url, token string
	out              *json.Encoder
	problems         io.Writer

	after string // position of the last event that was printed
}

// errFinal is a refusal that will not change by asking again.
type errFinal struct{ error }

const (
	tailPause   = 250 * time.Millisecond // before the first try to come back; then twice as long each time, up to …
	tailLongest = 8 * time.Second
	tailSilence = 90 * time.Second // the node pings every 25 s
	tailTimeout = 10 * time.Second
)

// follow prints events until ctx ends or the room is refused.
func (t *tail) follow(ctx context.Context) error {
	t.after = "0-0" // before the first event
	pause := tailPause
	for {
		heard, err := t.once(ctx)
		var final errFinal
		if ctx.Err() != nil || errors.As(err, &final) {
			return err
		}
		if heard {
			pause = tailPause
		}
		_, _ = fmt.Fprintf(t.problems, "parlor: %v; trying again\n", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + mathrand.N(pause/2)):
		}
		pause = min(2*pause, tailLongest)
	}
}

// once prints what one connection brings, and tells whether the subscription began.
func (t *tail) once(ctx context.Context) (heard bool, err error) {
	if err := t.resolve(ctx); err != nil {
		return false, err
	}
	dialer := websocket.Dialer{HandshakeTimeout: tailTimeout, Proxy: http.ProxyFromEnvironment}
	conn, response, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(t.url, "http")+"/api/v1/realtime", http.Header{"Authorization": {"Bearer " + t.token}})
	if err != nil {
		if response != nil {
			return false, refusalIn(response)
		}
		return false, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	ping := conn.PingHandler()
	conn.SetPingHandler(func(text string) error {
		_ = conn.SetReadDeadline(time.Now().Add(tailSilence))
		return ping(text)
	})
	if err := conn.WriteJSON(map[string]any{"id": "1", "type": "room.subscribe", "data": map[string]string{"roomId": t.room, "after": t.after}}); err != nil {
		return false, err
	}
	for {
		_ = conn.SetReadDeadline(time.Now().Add(tailSilence))
		_, frame, err := conn.ReadMessage()
		if websocket.IsCloseError(err, 4001, 4403, 4426) {
			return heard, errFinal{err}
		}
		if err != nil {
			return heard, err
		}
		if heard, err = t.print(frame, heard); err != nil {
			return heard, err
		}
	}
}

// resolve finds the room's id where its code was given.
func (t *tail) resolve(ctx context.Context) error {
	if len(t.room) == 36 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tailTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url+"/api/v1/game-session/get?code="+url.QueryEscape(t.room), nil)
	if err != nil {
		return errFinal{err}
	}
	request.Header.Set("Authorization", "Bearer "+t.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return refusalIn(response)
	}
	var room struct {
		RoomID string `json:"roomId"`
	}
	if err := json.NewDecoder(response.Body).Decode(&room); err != nil {
		return err
	}
	t.room = room.RoomID
	return nil
}

// problem is what a node says when it refuses.
type problem struct {
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	Retryable bool   `json:"retryable"`
}

func (p *problem) err() error {
	err := fmt.Errorf("%s: %s", p.Code, p.Detail)
	if p.Retryable {
		return err
	}
	return errFinal{err}
}

func refusalIn(response *http.Response) error {
	var p problem
	if json.NewDecoder(response.Body).Decode(&p) != nil || p.Code == "" {
		return fmt.Errorf("the node answers %s", response.Status) // something in between, perhaps
	}
	return p.err()
}

// heardEvent is as much of what a node says as tail must know.
type heardEvent struct {
	OK       *bool           `json:"ok"` // of a reply
	Error    *problem        `json:"error"`
	RoomID   string          `json:"roomId"`
	Position string          `json:"position"`
	Data     json.RawMessage `json:"data"`
}

// print prints the room's events in a frame, which may be an array, and keeps their position.
func (t *tail) print(frame []byte, heard bool) (bool, error) {
	var batch []json.RawMessage
	if json.Unmarshal(frame, &batch) != nil {
		batch = []json.RawMessage{frame}
	}
	for _, raw := range batch {
		var e heardEvent
		if err := json.Unmarshal(raw, &e); err != nil {
			return heard, err
		}
		switch {
		case e.Error != nil:
			return heard, e.Error.err()
		case e.OK != nil:
			heard = true
			var start struct{ Mode, Position string }
			if err := json.Unmarshal(e.Data, &start); err != nil {
				return heard, err
			}
			if start.Mode != "snapshot" {
				continue
			}
			raw, _ = json.Marshal(map[string]any{"type": "room.snapshot", "roomId": t.room, "position": start.Position, "data": e.Data})
			e.Position = start.Position
		case e.RoomID != t.room || e.Position == "": // hello, what happens to the player, what others say
			continue
		}
		if err := t.out.Encode(raw); err != nil {
			return heard, errFinal{err}
		}
		t.after = e.Position
	}
	return heard, nil
}
