package scripts

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Header is what a Lua file declares in the comment at its top.
type Header struct {
	Name      string   // of the file, without ".lua"
	Includes  []string // libraries, without LibraryPrefix
	Flags     []string // for Redis: AllowOOM or NoWrites
	Keys      Params
	Args      Params
	Statuses  []Status
	Invariant string // "" for none
}

// The flags of a script. One without a flag is refused as a whole by a store that is full.
const (
	AllowOOM = "allow-oom" // runs on a full store: it pays back, frees or ends something
	NoWrites = "no-writes" // only reads
)

// Params are the KEYS or the ARGV of a header.
type Params struct {
	firstNumber int
	Names       []string // what each one is
	Rest        string   // what follows them in any number; "" for none
}

var (
	labelLine        = regexp.MustCompile(`^-- (INCLUDES|FLAGS|KEYS|ARGV|RETURNS|INVARIANT)\s+(.*)$`)
	continuationLine = regexp.MustCompile(`^--\s{2,}(.*)$`)
)

// ParseHeader reads the header of a file.
func ParseHeader(name, text string) (Header, error) {
	if !strings.HasPrefix(text, "-- "+name+": ") {
		return Header{}, fmt.Errorf("%s.lua must start with \"-- %s: \"", name, name)
	}
	values := map[string]string{}
	label := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "--") {
			break
		}
		if m := labelLine.FindStringSubmatch(line); m != nil {
			label = m[1]
			values[label] = m[2]
		} else if m := continuationLine.FindStringSubmatch(line); m != nil && label != "" {
			values[label] += " " + m[1]
		} else {
			label = ""
		}
	}
	return Header{
		Name:      name,
		Includes:  strings.Fields(values["INCLUDES"]),
		Flags:     strings.Fields(values["FLAGS"]),
		Keys:      parseParams(values["KEYS"]),
		Args:      parseParams(values["ARGV"]),
		Statuses:  strings.Fields(values["RETURNS"]),
		Invariant: values["INVARIANT"],
	}, nil
}

// parseParams reads "9 target  10 ban  then pairs of a field and its text".
func parseParams(line string) Params {
	var p Params
	line, rest, _ := strings.Cut(" "+line, " then ")
	p.Rest = strings.TrimSpace(rest)
	for _, word := range strings.Fields(line) {
		number, err := strconv.Atoi(word)
		switch n := len(p.Names); {
		case err == nil && n == 0:
			p.firstNumber, p.Names = number, []string{""}
		case err == nil && number == p.firstNumber+n:
			p.Names = append(p.Names, "")
		case n == 0: // a name without a number: check reports it
			p.firstNumber, p.Names = -1, []string{word}
		default:
			p.Names[n-1] = strings.TrimSpace(p.Names[n-1] + " " + word)
		}
	}
	return p
}

// add returns p with more behind it.
func (p Params) add(more Params) Params {
	switch {
	case len(more.Names) == 0:
	case len(p.Names) == 0:
		p.firstNumber, p.Names = more.firstNumber, more.Names
	case more.firstNumber == p.firstNumber+len(p.Names):
		p.Names = slices.Concat(p.Names, more.Names)
	default: // check reports it
		p.firstNumber = -1
	}
	if more.Rest != "" {
		p.Rest = strings.TrimSpace(p.Rest + " " + more.Rest)
	}
	return p
}

// check returns an error when the numbers are not 1, 2, 3 … or one of them has no name.
func (p Params) check() error {
	switch {
	case len(p.Names) > 0 && p.firstNumber != 1:
		return fmt.Errorf("the numbers must be 1, 2, 3 …")
	case slices.Contains(p.Names, ""):
		return fmt.Errorf("number %d has no name", slices.Index(p.Names, "")+1)
	}
	return nil
}
