// Package parlor is the library for the server of a game, which hears every room of its game,
// replies to the calls of players, and starts and ends rooms.
//
//	server, err := parlor.NewServer(parlor.Options{URL: "https://parlor.example", Key: key})
//	server.On("room.started", func(ctx context.Context, e parlor.Event) error { … })
//	server.OnCall("move", func(ctx context.Context, c parlor.Call) (any, error) { … })
//	err = server.Run(ctx)
//
// A server dials in: it needs no public address. [Server.Run] keeps one WebSocket open, comes back
// when it is lost, and resumes where it was. The game hears its rooms once its settings have
// "feed": true, or once it has a webhook; rooms that are older than that are silent.
//
// # Order
//
// What is about one room is handled one after the other: its events, in their order, and the calls
// of its players. Rooms are handled side by side, [Options.Parallel] at a time.
//
// # Exactly once
//
// An event is handled once while the process lives. Its position is saved when the event, and all
// before it in its feed, are handled, so a process that was killed hears a few again: a handler
// must be harmless when it is repeated. A change of a room ([Server.Finish] and the other verbs)
// has a key and is sent again until it is answered, so it takes effect once. Give it a key of your
// own with [WithKey], made from the room, when the handler itself may be repeated.
//
// # Gaps
//
// When events are gone, and when a server begins without positions, [Server.OnRoom] gets each room
// that is open. [Server.OnGap] replaces that.
//
// The protocol is asyncapi.yaml and openapi.yaml of a node. The package imports nothing of the
// service, so it can be copied into another project.
package parlor
