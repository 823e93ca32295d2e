// Package logs writes the log of a process so that a person can read it.
//
// What is decided here:
//   - A duration has its unit, in JSON too: "3.2s".
//   - Lines about calls that the store did not serve are held back until their owner, package
//     readiness, knows more. During an outage they are dropped: its beginning and its end are one
//     line each. While the store serves they become one line a minute.
package logs
