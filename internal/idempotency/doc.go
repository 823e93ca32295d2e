// Package idempotency keeps the first answer to a request that carried an Idempotency-Key, for requests that are more than one
// script: where one script does all, its own receipt does this better.
//
//	absent ──Begin──▶ running ──Finish──▶ kept, at least 24 h
//	   ▲                 │
//	   └──── Release, or 30 s without a word
//
// Twice at once runs once. A node that dies in the middle leaves a request that may be half done: the same key then runs it
// anew, so what runs under this package must be harmless to do again.
//
// Answers hold secrets such as tokens, so they are sealed: with a key made from a signing key and the Idempotency-Key
// itself, which the store never sees.
package idempotency
