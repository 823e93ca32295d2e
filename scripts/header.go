package scripts

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Header is the contract in the comment at the top of a Lua file.
type Header struct {
	Name      string   // of the file, without ".lua"
	Includes  []string // libraries, without LibraryPrefix
	Flags     []string // for Redis: AllowOOM or NoWrites
	Keys      Params
	Args      Params
	Statuses  []Status
	Invariant string // "" for none
	Ledger    Ledger
	// Unconfirmed is why what the script writes needs no replica that has it, "" when it does.
	Unconfirmed string
}

// Writes reports whether the script may write.
func (h *Header) Writes() bool { return !slices.Contains(h.Flags, NoWrites) }

// Ledger says when a script appends an entry with its nonce to the ledger of an economy.
type Ledger struct {
	When LedgerRule
	Why  string // the condition of LedgerIf, or the reason of LedgerNever
}

// LedgerRule says what a reply with the status ok tells of the ledger.
type LedgerRule string

// The rules. One script has one of them, and the header says it in its line LEDGER.
const (
	LedgerNone   LedgerRule = ""       // the script has no key of a ledger, or only reads
	LedgerNever  LedgerRule = "never"  // it changes the ledger, and appends nothing
	LedgerAlways LedgerRule = "always" // each ok of an economy has an entry
	LedgerIf     LedgerRule = "if"     // ok alone has an entry, ok with values has none
)

// The flags of a script. One without a flag is refused as a whole by a store that is full.
const (
	AllowOOM = "allow-oom" // runs on a full store: it pays back, frees or ends something
	NoWrites = "no-writes" // only reads
)

// Params are the KEYS or the ARGV of a header. Each has the name of the local variable that has its
// value in the script, which the loader writes; that of a key ends in "_key" there.
type Params struct {
	firstNumber int
	Names       []string // "room_id"
	Meanings    []string // what each one is, "" when the name says it
	Rest        string   // what follows them in any number; "" for none
}

var (
	labelLine        = regexp.MustCompile(`^-- (INCLUDES|FLAGS|KEYS|ARGV|LEDGER|CONFIRM|RETURNS|INVARIANT)\s+(.*)$`)
	unknownLabel     = regexp.MustCompile(`^-- ([A-Z]{4,})\s{2,}`)
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
			if _, twice := values[label]; twice && isStrict(label) {
				return Header{}, fmt.Errorf("%s.lua has the line %s twice", name, label)
			}
			values[label] = m[2]
		} else if m := unknownLabel.FindStringSubmatch(line); m != nil {
			return Header{}, fmt.Errorf("%s.lua has the unknown line %s", name, m[1])
		} else if m := continuationLine.FindStringSubmatch(line); m != nil && label != "" {
			values[label] += " " + m[1]
		} else {
			label = ""
		}
	}
	h := Header{
		Name:      name,
		Includes:  strings.Fields(values["INCLUDES"]),
		Flags:     strings.Fields(values["FLAGS"]),
		Keys:      parseParams(values["KEYS"]),
		Args:      parseParams(values["ARGV"]),
		Statuses:  strings.Fields(values["RETURNS"]),
		Invariant: values["INVARIANT"],
	}
	var err error
	if text, ok := values["LEDGER"]; ok {
		h.Ledger, err = parseLedger(text)
	}
	if text, ok := values["CONFIRM"]; ok && err == nil {
		h.Unconfirmed, err = parseConfirm(text)
	}
	if err != nil {
		return Header{}, fmt.Errorf("%s.lua: %w", name, err)
	}
	return h, nil
}

// isStrict reports whether a line may stand once only.
func isStrict(label string) bool { return label == "LEDGER" || label == "CONFIRM" }

// parseLedger reads "always", "if <condition>" or "never: <reason>".
func parseLedger(text string) (Ledger, error) {
	if text == string(LedgerAlways) {
		return Ledger{When: LedgerAlways}, nil
	}
	if condition, ok := strings.CutPrefix(text, "if "); ok && strings.TrimSpace(condition) != "" {
		return Ledger{LedgerIf, condition}, nil
	}
	if reason, ok := strings.CutPrefix(text, "never: "); ok && strings.TrimSpace(reason) != "" {
		return Ledger{LedgerNever, reason}, nil
	}
	return Ledger{}, fmt.Errorf("LEDGER must be \"always\", \"if <condition>\" or \"never: <reason>\", not %q", text)
}

// parseConfirm reads "no: <reason>".
func parseConfirm(text string) (reason string, err error) {
	reason, ok := strings.CutPrefix(text, "no: ")
	if !ok || strings.TrimSpace(reason) == "" {
		return "", fmt.Errorf("CONFIRM must be \"no: <reason>\", not %q", text)
	}
	return reason, nil
}

// parseParams reads "9 target  10 ban: 1 or 0  then pairs of a field and its text".
func parseParams(line string) Params {
	var p Params
	line, rest, _ := strings.Cut(" "+line, " then ")
	p.Rest = strings.TrimSpace(rest)
	for _, word := range strings.Fields(line) {
		number, err := strconv.Atoi(word)
		switch n := len(p.Meanings); {
		case err == nil && n == 0:
			p.firstNumber, p.Meanings = number, []string{""}
		case err == nil && number == p.firstNumber+n:
			p.Meanings = append(p.Meanings, "")
		case n == 0: // a name without a number: check reports it
			p.firstNumber, p.Meanings = -1, []string{word}
		default:
			p.Meanings[n-1] = strings.TrimSpace(p.Meanings[n-1] + " " + word)
		}
	}
	for i, text := range p.Meanings {
		name, meaning, _ := strings.Cut(text, ":")
		p.Names, p.Meanings[i] = append(p.Names, name), strings.TrimSpace(meaning)
	}
	return p
}

// add returns p with more behind it.
func (p Params) add(more Params) Params {
	switch {
	case len(more.Names) == 0:
	case len(p.Names) == 0:
		p.firstNumber, p.Names, p.Meanings = more.firstNumber, more.Names, more.Meanings
	case more.firstNumber == p.firstNumber+len(p.Names):
		p.Names, p.Meanings = slices.Concat(p.Names, more.Names), slices.Concat(p.Meanings, more.Meanings)
	default: // check reports it
		p.firstNumber = -1
	}
	if more.Rest != "" {
		p.Rest = strings.TrimSpace(p.Rest + " " + more.Rest)
	}
	return p
}

var paramName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// check returns an error unless the numbers are 1, 2, 3 …, and the names are valid names of
// variables and differ.
func (p Params) check() error {
	if len(p.Names) > 0 && p.firstNumber != 1 {
		return fmt.Errorf("the numbers must be 1, 2, 3 …")
	}
	for i, name := range p.Names {
		if !paramName.MatchString(name) || slices.Contains(p.Names[:i], name) {
			return fmt.Errorf("number %d needs a name of its own of a-z, 0-9 and _, not %q", i+1, name)
		}
	}
	return nil
}

// Locals returns the line of Lua that gives the parameters of a file their names, "" for a file
// without any.
func (h *Header) Locals() string {
	var names, values []string
	for i, name := range h.Keys.Names {
		names, values = append(names, name+"_key"), append(values, fmt.Sprintf("KEYS[%d]", h.Keys.firstNumber+i))
	}
	for i, name := range h.Args.Names {
		names, values = append(names, name), append(values, fmt.Sprintf("ARGV[%d]", h.Args.firstNumber+i))
	}
	if len(names) == 0 {
		return ""
	}
	return "local " + strings.Join(names, ", ") + " = " + strings.Join(values, ", ") + "\n"
}

var positionName = regexp.MustCompile(`\bNEXT_(KEY|ARG)\b`)

// ExpandPositions returns a source with numbers in the place of NEXT_KEY and NEXT_ARG: those of the
// first key and argument behind those with a name.
func (h *Header) ExpandPositions(source string) string {
	if !strings.Contains(source, "NEXT_") {
		return source
	}
	return positionName.ReplaceAllStringFunc(source, func(name string) string {
		if name == "NEXT_KEY" {
			return strconv.Itoa(len(h.Keys.Names) + 1)
		}
		return strconv.Itoa(len(h.Args.Names) + 1)
	})
}

// mentions reports whether one of the parameters has a word in its name.
func (p Params) mentions(word string) bool {
	for _, text := range slices.Concat(p.Names, p.Meanings, []string{p.Rest}) {
		if slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }), word) {
			return true
		}
	}
	return false
}

// checkLedger returns an error when the LEDGER lines of a script and its libraries contradict the
// rest of its header. A script that may write and has a ledger among its keys must declare when it
// appends to it, and must have the nonce by which the entry is found.
func (h Header) checkLedger() error {
	mayAppend := h.Keys.mentions("ledger") && h.Writes()
	rule := h.Ledger.When
	switch {
	case mayAppend && rule == LedgerNone:
		return fmt.Errorf("the key of a ledger needs a line LEDGER")
	case !mayAppend && rule != LedgerNone:
		return fmt.Errorf("the line LEDGER needs the key of a ledger, and a script that writes")
	case (rule == LedgerAlways || rule == LedgerIf) && h.nonceArg() < 0:
		return fmt.Errorf("a script that appends to a ledger must have the argument nonce")
	}
	return nil
}

// nonceArg returns the place of the nonce of the call, from 0; -1 without one.
func (h *Header) nonceArg() int { return slices.Index(h.Args.Names, "nonce") }
