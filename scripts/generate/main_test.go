package main

import (
	"os"
	"testing"
)

func TestTheArgumentsAreThoseOfTheHeaders(t *testing.T) {
	want, err := formatArgs()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../" + argsPath)
	if err != nil || string(got) != string(want) {
		t.Errorf("%s is not what \"make generate\" writes: %v", argsPath, err)
	}
}
