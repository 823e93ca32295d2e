package handlers_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/sessions"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
	"go.yaml.in/yaml/v3"
)

// socketContract is asyncapi.yaml. Its schemas are OpenAPI schemas, so they can refer to those of
// openapi.yaml.
type socketContract struct {
	Channels   map[string]struct{ Messages map[string]any }
	Components struct {
		Messages map[string]struct {
			Payload  struct{ Schema any }
			Examples []struct{ Payload any }
		}
		Schemas map[string]struct{ Schema any }
	}

	schemas openapi3.Schemas // by "message-<name>" and "socket-<name>"
	mu      sync.Mutex
	seen    map[string]bool // messages that a frame was checked against
}

var socketSpec = sync.OnceValue(readSocketContract)

func readSocketContract() *socketContract {
	must := func(err error) {
		if err != nil {
			panic("asyncapi.yaml: " + err.Error())
		}
	}
	c := &socketContract{seen: map[string]bool{}}
	must(yaml.Unmarshal(handlers.AsyncAPI(), c))
	var doc map[string]any
	must(yaml.Unmarshal(handlers.OpenAPI(), &doc))
	doc["paths"] = map[string]any{}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	doc["components"] = map[string]any{"schemas": schemas}
	for name, s := range c.Components.Schemas {
		schemas["socket-"+name] = s.Schema
	}
	for name, m := range c.Components.Messages {
		schemas["message-"+name] = m.Payload.Schema
	}
	text, err := wire.Marshal(doc)
	must(err)
	// All references become references within this one document.
	for name := range c.Components.Schemas {
		before, after := `"#/components/schemas/`+name+`/schema"`, `"#/components/schemas/socket-`+name+`"`
		text = bytes.ReplaceAll(text, []byte(before), []byte(after))
	}
	text = bytes.ReplaceAll(text, []byte(`"./openapi.yaml#/`), []byte(`"#/`))
	loader := openapi3.NewLoader()
	loaded, err := loader.LoadFromData(text)
	must(err)
	must(loaded.Validate(loader.Context))
	for _, s := range loaded.Components.Schemas {
		if len(s.Value.AllOf) == 0 {
			// These are parts of an allOf and must accept the members of its other parts.
			closeSchema(s, map[*openapi3.Schema]bool{
				loaded.Components.Schemas["socket-RoomEvent"].Value:       true,
				loaded.Components.Schemas["socket-TournamentEvent"].Value: true,
				loaded.Components.Schemas["socket-UserEvent"].Value:       true,
			})
			continue
		}
		for _, part := range s.Value.AllOf {
			if data := part.Value.Properties["data"]; data != nil {
				closeSchema(data, map[*openapi3.Schema]bool{})
			}
		}
	}
	c.schemas = loaded.Components.Schemas
	return c
}

// check validates a decoded frame by the schema of a message, such as "room.joined" or "saved".
func (c *socketContract) check(message string, value any) error {
	s, ok := c.schemas["message-"+message]
	if !ok {
		return fmt.Errorf("asyncapi.yaml has no message %q", message)
	}
	c.mu.Lock()
	c.seen[message] = true
	c.mu.Unlock()
	err := s.Value.VisitJSON(value, openapi3.EnableFormatValidation(), openapi3.MultiErrors())
	if event, ok := value.(map[string]any); ok && err == nil && message == "feedEvent" {
		// The schema lets every type have the data of any other.
		name, _ := event["type"].(string)
		data := memberSchema(c.schemas["message-"+name], "data")
		if data == nil {
			return fmt.Errorf("asyncapi.yaml has no data of %q", name)
		}
		err = data.VisitJSON(event["data"], openapi3.EnableFormatValidation(), openapi3.MultiErrors())
	}
	return err
}

// memberSchema returns the schema of a member of objects that s describes, or nil. An allOf may
// have the member in a part.
func memberSchema(s *openapi3.SchemaRef, name string) *openapi3.Schema {
	if s == nil {
		return nil
	}
	for _, part := range slices.Concat(openapi3.SchemaRefs{s}, s.Value.AllOf) {
		if member := part.Value.Properties[name]; member != nil && len(member.Value.Properties) > 0 {
			return member.Value
		}
	}
	return nil
}

// checkFrame checks a frame against a message of the contract. If message is "", the frame is an
// event or a batch of events, each of which has its own type.
func checkFrame(t testing.TB, message string, frame []byte) {
	t.Helper()
	var value any
	if err := wire.Unmarshal(frame, &value); err != nil {
		t.Errorf("a frame is not JSON: %v: %s", err, frame)
		return
	}
	batch, ok := value.([]any)
	if !ok {
		batch = []any{value}
	}
	for _, one := range batch {
		name := message
		if event, ok := one.(map[string]any); ok && name == "" {
			name, _ = event["type"].(string)
		}
		if err := socketSpec().check(name, one); err != nil {
			t.Errorf("%s: %v\n%s", name, err, frame)
		}
	}
}

// expectEventsMatchContract checks every event that is stored, of rooms and of players, against the
// contract.
func (f *fixture) expectEventsMatchContract() {
	f.t.Helper()
	var checked atomic.Int64 // the masters are read at the same time
	read := func(ctx context.Context, node redis.UniversalClient) error {
		lists := node.ScanType(ctx, 0, "*", 1000, "list").Iterator()
		for lists.Next(ctx) {
			key := lists.Val()
			listID, isRoom := keys.ParseRoomEvents(key)
			if !isRoom {
				listID, _ = keys.ParseTourEvents(key)
			}
			if !strings.HasSuffix(key, ":events") && !strings.HasSuffix(key, ":lines") {
				continue // the ledger
			}
			entries, err := node.LRange(ctx, key, 0, -1).Result()
			if err != nil {
				return err
			}
			for _, entry := range entries {
				rendered, err := events.Render(entry, listID)
				if err != nil {
					return err
				}
				for _, event := range rendered {
					checkFrame(f.t, event.Type, event.JSON)
					checked.Add(1)
				}
			}
		}
		return lists.Err()
	}
	var err error
	if cluster, ok := f.db.Client.(*redis.ClusterClient); ok {
		readMaster := func(ctx context.Context, node *redis.Client) error { return read(ctx, node) }
		err = cluster.ForEachMaster(f.t.Context(), readMaster)
	} else {
		err = read(f.t.Context(), f.db.Client)
	}
	if err != nil || checked.Load() == 0 {
		f.t.Errorf("checked %d events: %v", checked.Load(), err)
	}
}

func TestEverySocketMessageHasExamplesThatFitItsSchema(t *testing.T) {
	c := socketSpec()
	for name, m := range c.Components.Messages {
		if len(m.Examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		for i, example := range m.Examples {
			text := testkit.Must(wire.Marshal(example.Payload))(t)
			var value map[string]any
			testkit.Check(t, wire.Unmarshal(text, &value))
			testkit.Report(t, c.check(name, value), "%s, example %d", name, i)
			// A schema that accepts everything proves nothing.
			for member := range value {
				broken := maps.Clone(value)
				broken[member] = map[string]any{"surprise": []any{1}}
				if c.check(name, broken) == nil {
					t.Errorf("%s accepts any %s", name, member)
				}
			}
		}
	}
}

func TestTheSocketContractKnowsEveryEvent(t *testing.T) {
	c := socketSpec()
	known := []string{ // messages from the client
		"auth.refresh", "room.subscribe", "room.unsubscribe", "room.send", "user.subscribe",
		"room.state.set", "room.turn.set", "board.subscribe", "board.unsubscribe",
		"tournament.subscribe", "tournament.unsubscribe",
		"game.subscribe", "game.unsubscribe", "room.start", "room.finish", "room.cancel", "room.reply", // from a server
	}
	for _, e := range events.All() {
		known = append(known, e.Name)
		channel := "realtime"
		if e.Audience == events.ToServer {
			channel = "server"
		}
		if m, ok := c.Channels[channel].Messages[e.Name]; !ok || m == nil {
			t.Errorf("the channel %s lacks %s", channel, e.Name)
		}
		s, ok := c.schemas["message-"+e.Name]
		if !ok {
			t.Errorf("asyncapi.yaml lacks %s", e.Name)
			continue
		}
		// The members in events.go must be those of the schema.
		data := memberSchema(s, "data")
		if data == nil {
			if e.DataMembers != "" {
				t.Errorf("%s has no data", e.Name)
			}
			continue
		}
		for _, member := range e.MemberNames() {
			name, optional := strings.CutSuffix(member, "?")
			if _, ok := data.Properties[name]; !ok {
				t.Errorf("%s: asyncapi.yaml lacks %s", e.Name, name)
			}
			if slices.Contains(data.Required, name) == optional {
				t.Errorf("%s: %s is optional in one place and required in the other", e.Name, name)
			}
		}
		if len(e.MemberNames()) != len(data.Properties) {
			t.Errorf("%s: events.go has %v, asyncapi.yaml has %v",
				e.Name, e.MemberNames(), slices.Sorted(maps.Keys(data.Properties)))
		}
	}
	for name := range c.Components.Messages {
		if strings.Contains(name, ".") && !slices.Contains(known, name) {
			t.Errorf("events.go lacks %s", name)
		}
	}
}

// The pages of /docs/close are built from this list.
func TestAsyncAPIListsEveryCloseCode(t *testing.T) {
	var doc struct {
		Info struct {
			CloseCodes []struct {
				Code                   int
				Title, Meaning, Advice string
			} `yaml:"x-close-codes"`
		}
	}
	testkit.Check(t, yaml.Unmarshal(handlers.AsyncAPI(), &doc))
	var listed []int
	for _, c := range doc.Info.CloseCodes {
		listed = append(listed, c.Code)
		if c.Title == "" || c.Meaning == "" || c.Advice == "" {
			t.Errorf("the close code %d lacks a title, a meaning or an advice", c.Code)
		}
	}
	want := []int{
		websocket.CloseGoingAway, websocket.CloseMessageTooBig, realtime.CloseInternal, realtime.CloseRestart,
		realtime.CloseExpired, realtime.CloseTooSlow, realtime.CloseRateLimited, sessions.CloseForbidden,
		realtime.CloseProtocolTooOld,
	}
	if !slices.Equal(listed, want) {
		t.Errorf("x-close-codes lists %v, want %v", listed, want)
	}
}
