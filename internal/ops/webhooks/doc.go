// Package webhooks delivers the events of a game to the addresses that its staff names, at least
// once and in order within a room.
//
// It takes the form of Standard Webhooks (https://www.standardwebhooks.com), whose library signs.
// One elected node delivers for all games: it reads the feeds of a game, and its ledger, from
// positions that it keeps in the store. The rooms of a target are spread over 16 lanes, and each
// lane has one request under way. A room that fails waits by itself and others pass it.
//
// # Invariants
//
//   - An event at or before the stored position of its feed was delivered, was parked, or belongs
//     to a room whose field WebhookBehind names a place before it.
//   - An event of a room is sent after the one before it was delivered or parked.
//   - A leader with an older fence, or one that has not read what staff put elsewhere, stores
//     nothing.
//   - The id of a message is that of its event. Two leaders, or a crash between a delivery and its
//     position, send the same message twice, and receivers drop the second.
package webhooks
