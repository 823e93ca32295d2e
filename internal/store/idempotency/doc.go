// Package idempotency makes a request with an Idempotency-Key take effect once, however often it
// arrives. It has two mechanisms; a request uses one of them:
//
//   - A Receipt, for changes that are one script: all changes of rooms, purchases of assets,
//     credits and debits of wallets, scores, and of tournaments to create, join, leave, check in
//     and disqualify. The script that makes the change stores its reply under the key, in the same
//     step, so that nothing is ever half done. A call without a key is safe against the resends of
//     the store's client library too: it leaves a receipt for a minute, or its nonce in what it
//     changes, as calls on rooms and most scores do.
//   - A stored response, for all other POSTs, which run several scripts or none: sign-in, friends,
//     games, tokens, asset definitions, plays and attempts, and what staff does to accounts,
//     leaderboards and tournaments. Service keeps the first HTTP response, encrypted.
//
// The state of a stored response:
//
//	absent ──Begin──▶ running ──Finish──▶ stored, at least 24 h
//	   ▲                 │
//	   └──── Release, or 30 s without Finish
//
// Two requests at once run once. When a node dies while a request runs, the request may be half
// done: the same key then runs it again, so what runs under this mechanism must be harmless to
// repeat.
//
// Responses contain secrets such as tokens. They are encrypted with a key derived from a signing
// key, the caller and the Idempotency-Key itself, which the store never sees.
package idempotency
