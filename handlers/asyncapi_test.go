package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/events"
	"github.com/redis/go-redis/v9"
	"go.yaml.in/yaml/v3"
)

// socketContract is asyncapi.yaml. Its schemas are those of OpenAPI, so openapi.yaml's can stand in them.
type socketContract struct {
	Channels   map[string]struct{ Messages map[string]any }
	Components struct {
		Messages map[string]struct {
			Payload  struct{ Schema any }
			Examples []struct{ Payload any }
		}
		Schemas map[string]struct{ Schema any }
	}

	schemas openapi3.Schemas // of each message, as "message-<name>"
	mu      sync.Mutex
	seen    map[string]bool // messages that a frame was held against
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
	text, err := json.Marshal(doc)
	must(err)
	// "./openapi.yaml#/components/schemas/X" and "#/components/schemas/X/schema" become names in this one document.
	for name := range c.Components.Schemas {
		text = bytes.ReplaceAll(text, []byte(`"#/components/schemas/`+name+`/schema"`), []byte(`"#/components/schemas/socket-`+name+`"`))
	}
	text = bytes.ReplaceAll(text, []byte(`"./openapi.yaml#/`), []byte(`"#/`))
	loader := openapi3.NewLoader()
	loaded, err := loader.LoadFromData(text)
	must(err)
	must(loaded.Validate(loader.Context))
	for _, s := range loaded.Components.Schemas {
		if len(s.Value.AllOf) == 0 { // a part of an allOf must let the others' members pass
			closeSchema(s, map[*openapi3.Schema]bool{loaded.Components.Schemas["socket-RoomEvent"].Value: true, loaded.Components.Schemas["socket-UserEvent"].Value: true})
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

// check holds a value that was decoded from a frame against the schema of a message, such as "room.joined" or "saved".
func (c *socketContract) check(message string, value any) error {
	s, ok := c.schemas["message-"+message]
	if !ok {
		return fmt.Errorf("asyncapi.yaml has no message %q", message)
	}
	c.mu.Lock()
	c.seen[message] = true
	c.mu.Unlock()
	return s.Value.VisitJSON(value, openapi3.EnableFormatValidation(), openapi3.MultiErrors())
}

// checkFrame holds a frame from the server to a client against a message of the contract; a batch of events is taken apart.
// For events, message may be "": they say themselves what they are.
func checkFrame(t testing.TB, message string, frame []byte) {
	t.Helper()
	var value any
	if err := json.Unmarshal(frame, &value); err != nil {
		t.Errorf("no JSON: %v: %s", err, frame)
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

// expectEventsMatchContract holds every event that the scripts have written so far against the contract.
func (f *fixture) expectEventsMatchContract() {
	f.t.Helper()
	var checked atomic.Int64 // masters are read at once
	read := func(ctx context.Context, node redis.UniversalClient) error {
		streams := node.ScanType(ctx, 0, "*:events", 1000, "stream").Iterator()
		for streams.Next(ctx) {
			entries, err := node.XRange(ctx, streams.Val(), "-", "+").Result()
			if err != nil {
				return err
			}
			for _, entry := range entries {
				checkFrame(f.t, "", []byte(entry.Values["e"].(string)))
				checked.Add(1)
			}
		}
		return streams.Err()
	}
	var err error
	if cluster, ok := f.db.Client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(f.t.Context(), func(ctx context.Context, node *redis.Client) error { return read(ctx, node) })
	} else {
		err = read(f.t.Context(), f.db.Client)
	}
	if err != nil || checked.Load() == 0 {
		f.t.Errorf("read the events: %d, %v", checked.Load(), err)
	}
}

func TestEverySocketMessageHasExamplesThatFitItsSchema(t *testing.T) {
	c := socketSpec()
	for name, m := range c.Components.Messages {
		if len(m.Examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		for i, example := range m.Examples {
			text, err := json.Marshal(example.Payload)
			if err != nil {
				t.Fatal(err)
			}
			var value map[string]any
			if err := json.Unmarshal(text, &value); err != nil {
				t.Fatal(err)
			}
			if err := c.check(name, value); err != nil {
				t.Errorf("%s, example %d: %v", name, i, err)
			}
			// A schema that lets everything pass proves nothing.
			for member := range value {
				broken := maps.Clone(value)
				broken[member] = map[string]any{"surprise": []any{1}}
				if c.check(name, broken) == nil {
					t.Errorf("%s takes any %s", name, member)
				}
			}
		}
	}
}

func TestTheSocketContractKnowsEveryEvent(t *testing.T) {
	c := socketSpec()
	var told []string
	for _, e := range events.All() {
		told = append(told, e.Name)
		if m, ok := c.Channels["realtime"].Messages[e.Name]; !ok || m == nil {
			t.Errorf("the channel realtime lacks %s", e.Name)
		}
		s, ok := c.schemas["message-"+e.Name]
		if !ok {
			t.Errorf("asyncapi.yaml lacks %s", e.Name)
			continue
		}
		// The members that events.go names are those of the schema.
		parts := slices.Concat(openapi3.SchemaRefs{s}, s.Value.AllOf)
		i := slices.IndexFunc(parts, func(p *openapi3.SchemaRef) bool {
			data := p.Value.Properties["data"]
			return data != nil && len(data.Value.Properties) > 0
		})
		if i < 0 {
			t.Errorf("%s has no data", e.Name)
			continue
		}
		data := parts[i].Value.Properties["data"].Value
		for _, member := range e.Members() {
			name, optional := strings.CutSuffix(member, "?")
			if _, ok := data.Properties[name]; !ok {
				t.Errorf("%s: asyncapi.yaml lacks %s", e.Name, name)
			}
			if slices.Contains(data.Required, name) == optional {
				t.Errorf("%s: %s is optional in one place and required in the other", e.Name, name)
			}
		}
		if len(e.Members()) != len(data.Properties) {
			t.Errorf("%s: events.go has %v, asyncapi.yaml has %v", e.Name, e.Members(), slices.Sorted(maps.Keys(data.Properties)))
		}
	}
	for name := range c.Components.Messages {
		if strings.Contains(name, ".") && !slices.Contains(told, name) && !slices.Contains([]string{"room.subscribe", "room.unsubscribe", "room.send"}, name) {
			t.Errorf("events.go lacks %s", name)
		}
	}
}
