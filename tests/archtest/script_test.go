package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/events"
)

// script is one Lua file: its header by label, and its code without comments.
type script struct {
	name, code string
	header     map[string]string
}

var (
	label   = regexp.MustCompile(`^-- (USES|KEYS|ARGV|GIVES|KEEPS)\s+(.*)$`)
	tail    = regexp.MustCompile(`…|\b(each|then|turns|pairs)\b`) // the list goes on
	wrapped = regexp.MustCompile(`([=,])\s*\n\s*`)                // a statement goes on
	comment = regexp.MustCompile(`(?m)--.*$`)
	literal = regexp.MustCompile(`'[^'\n]*'`)
)

func (h *house) scripts() (list []script, parts map[string]script) {
	parts = map[string]script{}
	for _, file := range slices.Sorted(maps.Keys(h.lua)) {
		s := script{name: strings.TrimSuffix(path.Base(file), ".lua"), header: map[string]string{}}
		under := ""
		for line := range strings.Lines(h.lua[file]) {
			line = strings.TrimRight(line, "\n")
			if !strings.HasPrefix(line, "--") {
				break
			}
			text := strings.TrimSpace(strings.TrimPrefix(line, "--"))
			if m := label.FindStringSubmatch(line); m != nil {
				under, text = m[1], m[2]
			}
			s.header[under] = strings.TrimSpace(s.header[under] + " " + text)
		}
		s.code = withoutComments(h.lua[file])
		if name, ok := strings.CutPrefix(s.name, "part_"); ok {
			parts[name] = s
		} else {
			list = append(list, s)
		}
	}
	return list, parts
}

// withoutComments drops comments, but not dashes inside a text.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		masked := literal.ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat("'", len(s)) })
		if at := comment.FindStringIndex(strings.TrimRight(masked, "\n")); at != nil {
			line = line[:at[0]] + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// counted is how many numbered things a header line declares: "1 room  2 events" are 2.
func counted(line string) int {
	n := 0
	for _, word := range strings.Fields(line) {
		if word == strconv.Itoa(n+1) {
			n++
		}
	}
	return n
}

var (
	byNumber   = map[string]*regexp.Regexp{"KEYS": regexp.MustCompile(`KEYS\[(\d+)\]`), "ARGV": regexp.MustCompile(`ARGV\[(\d+)\]`)}
	byVariable = map[string]*regexp.Regexp{
		"KEYS": regexp.MustCompile(`#KEYS\b|\bKEYS\[[^\d\]]|\bKEYS\s*[,)]`), "ARGV": regexp.MustCompile(`#ARGV\b|\bARGV\[[^\d\]]|\bARGV\s*[,)]`),
	}
)

// used tells the highest number with which the code reads KEYS or ARGV, and whether it reads more by a variable.
func used(code, array string) (highest int, more bool) {
	for _, m := range byNumber[array].FindAllStringSubmatch(code, -1) {
		n, _ := strconv.Atoi(m[1])
		highest = max(highest, n)
	}
	return highest, byVariable[array].MatchString(code)
}

var function = regexp.MustCompile(`(?ms)^local function (\w+)\(.*?^end$|^local function (\w+)\([^\n]* end$`)

var cut = map[string]map[string]string{}

// functions cuts the functions at the top level of a part by name.
func functions(code string) map[string]string {
	list, known := cut[code]
	if !known {
		list = map[string]string{}
		for _, m := range function.FindAllStringSubmatch(code, -1) {
			list[m[1]+m[2]] = m[0]
		}
		cut[code] = list
	}
	return list
}

// mentions tells whether a name stands in the code as a whole word.
func mentions(code, name string) bool {
	for rest := code; ; {
		at := strings.Index(rest, name)
		if at < 0 {
			return false
		}
		after := rest[at+len(name):]
		if (at == 0 || !isWord(rest[at-1])) && (after == "" || !isWord(after[0])) {
			return true
		}
		rest = after
	}
}

// calls tells whether the code calls a function by its bare name.
func calls(code, name string) bool {
	for rest := code; ; {
		at := strings.Index(rest, name+"(")
		if at < 0 {
			return false
		}
		if at == 0 || !isWord(rest[at-1]) && rest[at-1] != '.' {
			return true
		}
		rest = rest[at+len(name):]
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// whole is the script's code with its parts, less those of their functions that it never reaches.
func (s script) whole(parts map[string]script) string {
	code := s.code
	unreached := map[string]string{}
	for _, name := range strings.Fields(s.header["USES"]) {
		code += function.ReplaceAllString(parts[name].code, "")
		maps.Copy(unreached, functions(parts[name].code))
	}
	for again := true; again; {
		again = false
		for name, body := range unreached {
			if mentions(code, name) {
				code += "\n" + body
				delete(unreached, name)
				again = true
			}
		}
	}
	return code
}

var (
	answered = regexp.MustCompile(`\breturn\s*\{\s*'(\w+)'`)
	built    = regexp.MustCompile(`(?:\w+\(|[,=]|\()\s*\{\s*'(\w+)'\s*[,}]`)
	passed   = regexp.MustCompile(`\b(?:return|local function)?\s*(\w+)\(\s*'(\w+)'\s*[,)]`)
	called   = regexp.MustCompile(`redis\.p?call\(\s*'[A-Za-z]+'\s*,\s*(?:[\w\[\]]+\s*\.\.|'[^']*\{)`)
	numbered = regexp.MustCompile(`KEYS\[\d`)
	extended = regexp.MustCompile(`KEYS\[\w+\]\s*\.\.`)
	event    = regexp.MustCompile(`'((?:room|user|server)\.[a-z_]+)'`)
)

func wordsKnown() map[string]bool {
	known := map[string]bool{"ok": true, "stale": true, "replay": true}
	for _, word := range apierror.Codes() {
		known[word] = true
	}
	return known
}

// says lists the words that the code can answer with.
func says(code string, known map[string]bool) map[string]bool {
	words := map[string]bool{}
	for _, m := range answered.FindAllStringSubmatch(code, -1) {
		words[m[1]] = true
	}
	for _, m := range built.FindAllStringSubmatch(code, -1) {
		if known[m[1]] {
			words[m[1]] = true
		}
	}
	for _, m := range passed.FindAllStringSubmatch(code, -1) {
		if known[m[2]] && m[1] != "call" && m[1] != "pcall" {
			words[m[2]] = true
		}
	}
	return words
}

const goodScript = "-- room_join: seats.\n-- USES  clock\n-- KEYS  1 room\n-- ARGV  1 uid\n-- GIVES ok room_full\n" +
	"local room = KEYS[1]\nlocal uid = ARGV[1]\nif whole(now_ms) == uid then return {'room_full'} end\nreturn {'ok', room}\n"

const goodPart = "-- clock: time.\n-- gives now_ms, whole(n)\nlocal now_ms = 1\nlocal function whole(n) return n end\n"

// altered is a sound script with one thing changed.
func altered(old, changed string) map[string]string {
	if !strings.Contains(goodScript, old) {
		panic("house: the sound script has no " + old)
	}
	return map[string]string{"scripts/part_clock.lua": goodPart, "scripts/room_join.lua": strings.Replace(goodScript, old, changed, 1)}
}

var scriptRules = []rule{
	{
		name: "headers count KEYS and ARGV as the code does",
		ask: func(h *house) (complaints []string) {
			list, parts := h.scripts()
			for _, s := range list {
				code := s.whole(parts)
				for _, array := range []string{"KEYS", "ARGV"} {
					line := s.header[array]
					declared, open := counted(line), tail.MatchString(line)
					highest, more := used(code, array)
					switch {
					case more && !open:
						complaints = append(complaints, fmt.Sprintf("%s reads %s by a variable; the header must end in \"then …\", \"each …\" or \"pairs …\" (it says %q)", s.name, array, line))
					case !more && open:
						complaints = append(complaints, fmt.Sprintf("%s has an open list of %s in its header and reads none", s.name, array))
					case array == "KEYS" && declared == 1 && highest == 0: // it chooses the node of a Cluster
					case !more && highest != declared, more && highest > declared && declared > 0:
						complaints = append(complaints, fmt.Sprintf("%s declares %d %s and uses %d", s.name, declared, array, highest))
					}
				}
			}
			return complaints
		},
		breaks: map[string]map[string]string{
			"a key too few":     altered("1 room\n", "\n"),
			"a key too many":    altered("1 room\n", "1 room  2 events\n"),
			"an argument more":  altered("local uid = ARGV[1]", "local uid, x = ARGV[1], ARGV[2]"),
			"an open list":      altered("{'ok', room}", "{'ok', #ARGV}"),
			"open without use":  altered("1 uid", "1 uid  then each of the others"),
			"unpacked at large": altered("{'ok', room}", "{'ok', unpack(KEYS)}"),
		},
	},
	{
		name: "keys come through KEYS and have names",
		ask: func(h *house) (complaints []string) {
			list, parts := h.scripts()
			for _, s := range slices.Concat(list, slices.Collect(maps.Values(parts))) {
				for line := range strings.Lines(wrapped.ReplaceAllString(s.code, "$1 ")) {
					line = strings.TrimSpace(line)
					if numbered.MatchString(line) && !strings.HasPrefix(line, "local ") && !strings.HasPrefix(line, "for ") {
						complaints = append(complaints, s.name+" uses a key without a name: "+line)
					}
					if called.MatchString(line) || extended.MatchString(line) || key.MatchString(strings.Join(literal.FindAllString(line, -1), " ")) {
						complaints = append(complaints, s.name+" makes up a key: "+line)
					}
				}
			}
			return complaints
		},
		breaks: map[string]map[string]string{
			"no name":       altered("{'ok', room}", "{'ok', redis.call('GET', KEYS[1])}"),
			"a made-up key": altered("{'ok', room}", "{'ok', redis.call('GET', room .. ':events')}"),
			"a spelled key": altered("{'ok', room}", "{'ok', redis.call('GET', '{e:main}:x')}"),
		},
	},
	{
		name: "a script gives the words of its header, and refusals know them",
		ask: func(h *house) (complaints []string) {
			known := wordsKnown()
			list, parts := h.scripts()
			for _, s := range list {
				code := s.whole(parts)
				gives := strings.Fields(s.header["GIVES"])
				said := says(code, known)
				for _, word := range gives {
					if !known[word] {
						complaints = append(complaints, fmt.Sprintf("%s gives %s, which is not in package apierror", s.name, word))
					}
					if !strings.Contains(code, "'"+word+"'") {
						complaints = append(complaints, fmt.Sprintf("%s promises %s and never says it", s.name, word))
					}
				}
				for _, word := range slices.Sorted(maps.Keys(said)) {
					if !slices.Contains(gives, word) {
						complaints = append(complaints, fmt.Sprintf("%s says %s, which its header does not give", s.name, word))
					}
				}
			}
			return complaints
		},
		breaks: map[string]map[string]string{
			"a word never said":      altered("ok room_full", "ok room_full room_closed"),
			"a word not promised":    altered("ok room_full", "ok"),
			"a word nobody knows":    {"scripts/part_clock.lua": goodPart, "scripts/room_join.lua": strings.ReplaceAll(goodScript, "room_full", "room_fulll")},
			"a word through a call":  altered("return {'ok', room}", "return keep(room, {'sold_out'})"),
			"a word given to a call": altered("return {'ok', room}", "return refuse('sold_out')"),
		},
	},
	{
		name: "parts are there, in order and of use",
		ask: func(h *house) (complaints []string) {
			list, parts := h.scripts()
			inUse := map[string]bool{}
			for _, s := range list {
				uses := strings.Fields(s.header["USES"])
				for i, name := range uses {
					inUse[name] = true
					part, ok := parts[name]
					if !ok {
						complaints = append(complaints, s.name+" uses part "+name+", which is not there")
						continue
					}
					rest := s.code
					for _, later := range uses[i+1:] {
						rest += parts[later].code
					}
					if !slices.ContainsFunc(names(part), func(n string) bool { return mentions(rest, n) }) {
						complaints = append(complaints, s.name+" uses part "+name+" and nothing of it")
					}
					for _, needed := range needs(part) {
						if !slices.Contains(uses[:i], needed) {
							complaints = append(complaints, fmt.Sprintf("%s: part %s needs %s in front of it", s.name, name, needed))
						}
					}
				}
				for _, name := range slices.Sorted(maps.Keys(parts)) {
					for f := range functions(parts[name].code) {
						if calls(s.code, f) && !slices.Contains(uses, name) && !strings.Contains(s.code, "function "+f+"(") {
							complaints = append(complaints, fmt.Sprintf("%s calls %s and does not use part %s", s.name, f, name))
						}
					}
				}
			}
			for _, name := range slices.Sorted(maps.Keys(parts)) {
				if !inUse[name] {
					complaints = append(complaints, "no script uses part "+name)
				}
			}
			return complaints
		},
		breaks: map[string]map[string]string{
			"an absent part": altered("clock", "clock money"),
			"a useless part": altered("whole(now_ms)", "'7'"),
			"a missing part": altered("-- USES  clock\n", ""),
			"out of order": {
				"scripts/part_clock.lua": goodPart, "scripts/part_event.lua": "-- event: says. Needs clock.\nlocal function emit(x) return whole(x) end\n",
				"scripts/room_join.lua": strings.NewReplacer("clock", "event clock", "{'ok', room}", "{'ok', emit(room)}").Replace(goodScript),
			},
		},
	},
	{
		name: "every script has its Go name, once, and a caller",
		ask: func(h *house) (complaints []string) {
			list, _ := h.scripts()
			registered, callers := map[string][]string{}, map[string]bool{}
			for _, s := range h.code {
				ast.Inspect(s.file, func(n ast.Node) bool {
					switch x := n.(type) {
					case *ast.ValueSpec:
						for i, v := range x.Values {
							call, ok := v.(*ast.CallExpr)
							if !ok || s.top() != "scripts" || len(call.Args) != 1 {
								continue
							}
							if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "script" {
								name := strings.Trim(call.Args[0].(*ast.BasicLit).Value, `"`)
								registered[name] = append(registered[name], x.Names[i].Name)
							}
						}
					case *ast.SelectorExpr:
						if p, ok := x.X.(*ast.Ident); ok && p.Name == "scripts" && !s.isTest() {
							callers[x.Sel.Name] = true
						}
					}
					return true
				})
			}
			for _, s := range list {
				want := goName(s.name)
				if got := registered[s.name]; len(got) != 1 || got[0] != want {
					complaints = append(complaints, fmt.Sprintf("%s.lua is registered as %v; want %s, once", s.name, got, want))
				}
				if !callers[want] {
					complaints = append(complaints, "nothing runs scripts."+want)
				}
			}
			return complaints
		},
		breaks: map[string]map[string]string{
			"not registered": {"scripts/room_join.lua": goodScript, "rooms/store.go": `package rooms; var x = scripts.RoomJoin`},
			"misnamed": {
				"scripts/room_join.lua": goodScript, "scripts/list.go": `package scripts; var JoinRoom = script("room_join")`,
				"rooms/store.go": `package rooms; var x = scripts.RoomJoin`,
			},
			"never run": {"scripts/room_join.lua": goodScript, "scripts/list.go": `package scripts; var RoomJoin = script("room_join")`},
		},
	},
	{
		name: "scripts tell only events that are on the page",
		ask: func(h *house) (complaints []string) {
			page := map[string]bool{}
			for _, e := range events.All() {
				page[e.Name] = true
			}
			list, parts := h.scripts()
			for _, s := range slices.Concat(list, slices.Collect(maps.Values(parts))) {
				for _, m := range event.FindAllStringSubmatch(s.code, -1) {
					if !page[m[1]] {
						complaints = append(complaints, s.name+" tells "+m[1]+", which is not in package events")
					}
				}
			}
			return complaints
		},
		breaks: map[string]map[string]string{"an unknown event": altered("{'ok', room}", "{'ok', 'room.exploded'}")},
	},
}

// names lists what a part defines.
func names(part script) []string {
	var list []string
	for _, m := range regexp.MustCompile(`(?m)^local (?:function )?(\w+)`).FindAllStringSubmatch(part.code, -1) {
		list = append(list, m[1])
	}
	return list
}

// needs lists the parts that the sentence of a part asks for: "Needs clock and event."
func needs(part script) []string {
	m := regexp.MustCompile(`Needs ([a-z, ]+)\.`).FindStringSubmatch(part.header[""])
	if m == nil {
		return nil
	}
	return strings.FieldsFunc(strings.ReplaceAll(m[1], " and ", ","), func(r rune) bool { return r == ',' || r == ' ' })
}

// goName is noun_verb as NounVerb.
func goName(file string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(file, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
