// Package handlers serves the HTTP interface: it decodes a request, calls a domain and encodes the
// response.
//
// Three files describe all of it. routes.go lists every operation with who may call it, how often,
// and which errors it returns. problem.go turns every error into what the caller sees. openapi.yaml
// is the contract; the tests check it against the routes and against every request and response
// that they exchange.
//
// It is the only package that imports gin. It does not import the store.
package handlers
