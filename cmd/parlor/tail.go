package main

import (
	"context"
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
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/spf13/cobra"
)

func tailCommand() *cobra.Command {
	var t tail
	c := &cobra.Command{
		Use: "tail", Short: "Print the events of a room as they happen, one JSON object a line", Args: cobra.NoArgs,
		Long: "tail subscribes to a room over the WebSocket of a node, as a game's client does. It starts with the room's\n" +
			"first event, or with a room.snapshot when that is no longer stored. It reconnects when the connection is lost,\n" +
			"and misses no event.",
		Example: "  parlor tail --room $ROOM --token $ADA_TOKEN",
		RunE: func(c *cobra.Command, _ []string) error {
			if t.roomIDOrCode == "" || t.accessToken == "" {
				return errors.New("tail needs --room, and --token or PARLOR_TOKEN: a player's access token")
			}
			t.stdout, t.stderr = c.OutOrStdout(), c.ErrOrStderr()
			err := t.follow(c.Context())
			if c.Context().Err() != nil {
				return nil // stopped
			}
			return err
		},
	}
	c.Flags().StringVar(&t.roomIDOrCode, "room", "", "the room, by id or code")
	c.Flags().StringVar(&t.nodeURL, "url", "http://127.0.0.1:8080", "a node, or the load balancer in front of several")
	c.Flags().StringVar(&t.accessToken, "token", os.Getenv("PARLOR_TOKEN"),
		"the access token of a player who may see the room")
	c.Flags().Lookup("token").DefValue = "" // --help prints no secret
	return c
}

// tail follows one room.
type tail struct {
	roomIDOrCode string // id or code
	nodeURL      string // of a node: http://host:port
	accessToken  string // access token of a player

	stdout, stderr io.Writer

	afterPosition string // position of the last event that was printed
}

// permanentError is an error that a retry does not change.
type permanentError struct{ error }

const (
	minBackoff      = 250 * time.Millisecond // before the first reconnect; doubled each time
	maxBackoff      = 8 * time.Second
	tailReadTimeout = 90 * time.Second // the node pings every 25 s
	tailTimeout     = 10 * time.Second // of a handshake or a request
)

// follow prints events until ctx ends or an error is permanent.
func (t *tail) follow(ctx context.Context) error {
	t.afterPosition = "0-0" // before the first event
	backoff := minBackoff
	for {
		subscribed, err := t.followOnce(ctx)
		var permanent permanentError
		if ctx.Err() != nil || errors.As(err, &permanent) {
			return err
		}
		if subscribed {
			backoff = minBackoff
		}
		_, _ = fmt.Fprintf(t.stderr, "parlor: %v; reconnecting\n", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(backoff/2 + mathrand.N(backoff/2)):
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// followOnce prints the events of one connection. It reports whether the subscription succeeded.
func (t *tail) followOnce(ctx context.Context) (subscribed bool, err error) {
	if err := t.resolveRoomCode(ctx); err != nil {
		return false, err
	}
	dialer := websocket.Dialer{HandshakeTimeout: tailTimeout, Proxy: http.ProxyFromEnvironment}
	conn, response, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(t.nodeURL, "http")+"/api/v1/realtime",
		http.Header{"Authorization": {"Bearer " + t.accessToken}})
	if err != nil {
		if response != nil {
			return false, responseError(response)
		}
		return false, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	ping := conn.PingHandler()
	conn.SetPingHandler(func(text string) error {
		_ = conn.SetReadDeadline(time.Now().Add(tailReadTimeout))
		return ping(text)
	})
	subscribe := map[string]any{
		"id": "1", "type": "room.subscribe", "data": map[string]string{"roomId": t.roomIDOrCode, "after": t.afterPosition},
	}
	if err := conn.WriteJSON(subscribe); err != nil {
		return false, err
	}
	for {
		_ = conn.SetReadDeadline(time.Now().Add(tailReadTimeout))
		_, frame, err := conn.ReadMessage()
		if websocket.IsCloseError(err, 4001, 4403, 4426) {
			return subscribed, permanentError{err}
		}
		if err != nil {
			return subscribed, err
		}
		confirmed, err := t.printFrame(frame)
		subscribed = subscribed || confirmed
		if err != nil {
			return subscribed, err
		}
	}
}

// resolveRoomCode replaces a room's code by its id.
func (t *tail) resolveRoomCode(ctx context.Context) error {
	if len(t.roomIDOrCode) == 36 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tailTimeout)
	defer cancel()
	path := "/api/v1/game-session/get?code=" + url.QueryEscape(t.roomIDOrCode)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.nodeURL+path, nil)
	if err != nil {
		return permanentError{err}
	}
	request.Header.Set("Authorization", "Bearer "+t.accessToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return responseError(response)
	}
	var room struct {
		RoomID string `json:"roomId"`
	}
	body, err := io.ReadAll(response.Body)
	if err == nil {
		err = wire.Unmarshal(body, &room)
	}
	if err != nil {
		return err
	}
	t.roomIDOrCode = room.RoomID
	return nil
}

// problem is the error of a node: RFC 9457, also in replies on the socket.
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
	return permanentError{err}
}

// responseError returns the error in a response.
func responseError(response *http.Response) error {
	body, _ := io.ReadAll(response.Body)
	var p problem
	if wire.Unmarshal(body, &p) != nil || p.Code == "" {
		return fmt.Errorf("the node returned %s", response.Status) // a proxy in between, perhaps
	}
	return p.err()
}

// message is a reply or an event from a node, as far as tail needs it.
type message struct {
	OK       *bool        `json:"ok"` // of a reply
	Error    *problem     `json:"error"`
	RoomID   string       `json:"roomId"`
	Position string       `json:"position"`
	Data     wire.RawJSON `json:"data"`
}

// printFrame prints the room's events in a frame, which may be an array, and remembers their
// position. It reports whether the frame confirmed the subscription.
func (t *tail) printFrame(frame []byte) (confirmed bool, err error) {
	var batch []wire.RawJSON
	if wire.Unmarshal(frame, &batch) != nil {
		batch = []wire.RawJSON{frame}
	}
	for _, raw := range batch {
		var m message
		if err := wire.Unmarshal(raw, &m); err != nil {
			return confirmed, err
		}
		switch {
		case m.Error != nil:
			return confirmed, m.Error.err()
		case m.OK != nil:
			confirmed = true
			err = t.printSnapshot(m.Data)
		case m.RoomID == t.roomIDOrCode && m.Position != "": // else hello, an event to the player, a message in the room
			err = t.printEvent(raw, m.Position)
		}
		if err != nil {
			return confirmed, err
		}
	}
	return confirmed, nil
}

// printSnapshot prints the snapshot with which a subscription started, if it did.
func (t *tail) printSnapshot(data wire.RawJSON) error {
	var start struct {
		Mode     string `json:"mode"`
		Position string `json:"position"`
	}
	if err := wire.Unmarshal(data, &start); err != nil || start.Mode != "snapshot" {
		return err
	}
	event, err := wire.Marshal(map[string]any{
		"type": "room.snapshot", "roomId": t.roomIDOrCode, "position": start.Position, "data": data,
	})
	if err != nil {
		return err
	}
	return t.printEvent(event, start.Position)
}

func (t *tail) printEvent(event []byte, position string) error {
	if _, err := fmt.Fprintf(t.stdout, "%s\n", event); err != nil {
		return permanentError{err}
	}
	t.afterPosition = position
	return nil
}
