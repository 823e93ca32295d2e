// Package apierror lists every error that a client can receive: its code, its HTTP status, its
// title and whether a retry can succeed.
//
// An Error is safe to show to the caller and means that nothing was changed. Every other error is
// internal: it is logged once, by package handlers, and shown as "internal". The same code is a
// script's status, the Go error's code and the "code" of the problem body (RFC 9457).
//
// The package knows no transport and never logs.
package apierror
