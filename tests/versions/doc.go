// Package versions holds releases to what they promise each other: a store that two of them share
// for the time of an upgrade, or of the way back, serves everyone and loses nothing.
package versions
