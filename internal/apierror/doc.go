// Package apierror is the vocabulary of refusal: every stable word by which Parlor
// says no, with its HTTP status, its title and whether asking again can help.
//
// A refusal is safe to show to the caller and means that nothing was changed. Everything
// else that goes wrong is a failure: an ordinary error, logged at the edge and shown as
// "internal". The same word is the script's answer, the Go error's code, the "code" of the
// problem body (RFC 9457) and the entry in the documentation.
//
// The package knows no transport and never logs.
package apierror
