//go:build race

package nodetest

const raceEnabled = true
