package scripts

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

//go:embed *.lua
var files embed.FS

// Script is one atomic change of state, ready to be sent.
type Script struct {
	Name   string // the file's name without ".lua"
	Source string // parts and body, as Redis gets them
	SHA    string // SHA-1 of Source in hexadecimal, as EVALSHA wants it

	Body  string   // the file itself
	Uses  []string // parts
	Keys  string   // the KEYS line
	Args  string   // the ARGV line
	Gives []string // words
	Keeps string   // the invariant, or ""
}

var all = map[string]*Script{}

// All answers every script by its name.
func All() map[string]*Script { return all }

// script loads the file at start-up; a header that cannot be read ends the process, since the
// sources are part of the binary and a test loads them all.
func script(name string) *Script {
	body, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic("scripts: " + err.Error())
	}
	s := &Script{Name: name, Body: string(body)}
	h := header(s.Body)
	if !strings.HasPrefix(h[""], name+": ") {
		panic(fmt.Sprintf("scripts: %s.lua must start with \"-- %s: \"", name, name))
	}
	s.Uses = strings.Fields(h["USES"])
	s.Keys, s.Args, s.Keeps = h["KEYS"], h["ARGV"], h["KEEPS"]
	s.Gives = strings.Fields(h["GIVES"])
	var source strings.Builder
	for _, part := range s.Uses {
		text, err := files.ReadFile("part_" + part + ".lua")
		if err != nil {
			panic("scripts: " + name + ": " + err.Error())
		}
		source.Write(text)
	}
	source.WriteString(s.Body)
	s.Source = source.String()
	sum := sha1.Sum([]byte(s.Source))
	s.SHA = hex.EncodeToString(sum[:])
	all[name] = s
	return s
}

var headerLine = regexp.MustCompile(`^-- (USES|KEYS|ARGV|GIVES|KEEPS)\s+(.*)$`)

// header reads the comment lines at the top; the sentence before the first label has the label "".
func header(body string) map[string]string {
	h := map[string]string{}
	label := ""
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "--") {
			break
		}
		text := strings.TrimSpace(strings.TrimPrefix(line, "--"))
		if m := headerLine.FindStringSubmatch(line); m != nil {
			label, text = m[1], m[2]
		}
		h[label] = strings.TrimSpace(h[label] + " " + text)
	}
	return h
}
