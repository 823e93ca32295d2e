package scripts

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
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
	var parts strings.Builder
	for _, part := range s.Uses {
		text, err := files.ReadFile("part_" + part + ".lua")
		if err != nil {
			panic("scripts: " + name + ": " + err.Error())
		}
		parts.Write(text)
	}
	s.Source = linked(parts.String(), s.Body)
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

var (
	comment  = regexp.MustCompile(`(?m)^ *--.*\n`)
	function = regexp.MustCompile(`(?ms)^local function (\w+)\([^\n]* end\n|^local function (\w+)\(.*?^end\n`)
	word     = regexp.MustCompile(`\w+`)
)

// linked puts a body behind its parts, without those functions of theirs that it never reaches: a script makes all its functions
// anew whenever it runs, and each costs the store as much as a small command.
func linked(parts, body string) string {
	code := comment.ReplaceAllString(parts, "")
	reached := map[string]bool{}
	reach := func(text string) {
		for _, name := range word.FindAllString(text, -1) {
			reached[name] = true
		}
	}
	reach(comment.ReplaceAllString(body, ""))
	reach(function.ReplaceAllString(code, ""))
	// A function sees only what stands above it, so one look at each, from the last to the first, finds all.
	functions := function.FindAllStringSubmatch(code, -1)
	for _, f := range slices.Backward(functions) {
		if name := f[1] + f[2]; reached[name] {
			reach(f[0])
		}
	}
	code = function.ReplaceAllStringFunc(code, func(f string) string {
		if m := function.FindStringSubmatch(f); !reached[m[1]+m[2]] {
			return ""
		}
		return f
	})
	return code + body
}
