// Package handlers is the HTTP edge: it decodes a request, makes one call of a domain and encodes the answer.
//
// Three pages are the whole of it. routes.go lists every operation with who may call it, how often and what it does;
// problem.go turns every error into what the caller sees; openapi.yaml is the contract, and the tests hold it to the
// routes and to every request and answer that they make.
//
// It is the only package that knows gin. It knows no Redis and decides nothing that a domain decides.
package handlers
