package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/scripts"
	lua "github.com/yuin/gopher-lua"
	luaast "github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// luaFile is one Lua file, a script or a library.
type luaFile struct {
	path   string
	code   string // without comments, with layouts expanded
	header scripts.Header
}

func (f luaFile) name() string { return strings.TrimSuffix(path.Base(f.path), ".lua") }

// luaFiles returns all Lua files of the project, and an error for each whose header cannot be read.
func (p *project) luaFiles() (list []luaFile, errs []error) {
	for _, file := range slices.Sorted(maps.Keys(p.lua)) {
		f := luaFile{path: file}
		header, err := scripts.ParseHeader(f.name(), p.lua[file])
		if err == nil {
			code := header.Locals() + header.ExpandPositions(withoutComments(p.lua[file]))
			f.code, err = scripts.ExpandLayouts(code, math.MaxInt)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		f.header = header
		list = append(list, f)
	}
	return list, errs
}

// libraries returns the libraries by the names that INCLUDES gives them.
func (p *project) libraries() map[string]luaFile {
	found := map[string]luaFile{}
	list, _ := p.luaFiles()
	for _, f := range list {
		if name, ok := strings.CutPrefix(f.name(), scripts.LibraryPrefix); ok {
			found[name] = f
		}
	}
	return found
}

// scripts returns the scripts, loaded as the program loads them, and an error for each that cannot
// be loaded.
func (p *project) scripts() (list []*scripts.Script, errs []error) {
	files := fstest.MapFS{}
	for file, text := range p.lua {
		files[path.Base(file)] = &fstest.MapFile{Data: []byte(text)}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(file, scripts.LibraryPrefix) {
			continue
		}
		s, err := scripts.Load(files, strings.TrimSuffix(file, ".lua"))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, s)
	}
	return list, errs
}

var (
	comment = regexp.MustCompile(`--.*$`)
	literal = regexp.MustCompile(`'[^'\n]*'`)
	wrapped = regexp.MustCompile(`([=,])\s*\n\s*`) // a statement goes on
)

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

// numberedParam is KEYS or ARGV with a number, which only the loader writes.
var numberedParam = regexp.MustCompile(`\b(?:KEYS|ARGV)\[\d`)

// moreParams is how code reads those behind the ones with a name.
var moreParams = map[string]*regexp.Regexp{
	"KEYS": regexp.MustCompile(`#KEYS\b|\bKEYS\[|\bKEYS\s*[,)]`),
	"ARGV": regexp.MustCompile(`#ARGV\b|\bARGV\[|\bARGV\s*[,)]`),
}

// ownText returns the texts of a script and of its libraries, without comments and without what the
// loader writes for their parameters.
func (p *project) ownText(s *scripts.Script) string {
	text := withoutComments(p.lua["scripts/"+s.Name+".lua"])
	for _, include := range s.Includes {
		text += withoutComments(p.lua["scripts/"+scripts.LibraryPrefix+include+".lua"])
	}
	if expanded, err := scripts.ExpandLayouts(text, math.MaxInt); err == nil { // another rule reports an error
		return expanded
	}
	return text
}

var (
	returned  = regexp.MustCompile(`\breturn\s*\{\s*'(\w+)'`)
	plain     = regexp.MustCompile(`\breturn\s+'(\w+)'`)
	built     = regexp.MustCompile(`(?:\w+\(|[,=]|\()\s*\{\s*'(\w+)'\s*[,}]`)
	passed    = regexp.MustCompile(`\b(?:return|local function)?\s*(\w+)\(\s*'(\w+)'\s*[,)]`)
	madeUpKey = regexp.MustCompile(`redis\.p?call\(\s*'[A-Za-z]+'\s*,\s*(?:[\w\[\]]+\s*\.\.|'[^']*\{)`)
	extended  = regexp.MustCompile(`KEYS\[\w+\]\s*\.\.`)
	eventType = regexp.MustCompile(`'((?:room|user|server)\.[a-z_]+)'`)
)

// writeCommand is a command of ours that changes a key.
var writeCommand = regexp.MustCompile(`redis\.p?call\(\s*(?:[a-z]|'(?:SET|DEL|INCR|GETDEL|PEXPIRE|EXPIRE|` +
	`H(?:SET|SETNX|DEL|INCRBY)|[RL](?:PUSH|POP|TRIM|REM)|S(?:ADD|REM|POP)|Z(?:ADD|REM\w*|INCRBY)|X(?:ADD|TRIM|DEL))')`)

// appendsToLedger is how a script appends an entry, or puts the ledger among the lists to extend.
var appendsToLedger = regexp.MustCompile(`redis\.p?call\(\s*'[RL]PUSH',\s*ledger_key|\]\s*=\s*ledger_key\b`)

// runsOnFullStore are the scripts that a full store runs too, each with the reason and with what
// bounds the memory that it takes.
var runsOnFullStore = map[string]string{
	"room_finish":          "pays the pot back; a line of the ledger and one for each seat, and the room goes",
	"room_report":          "pays the pot back; a line for each seat, once, and one report of each player",
	"room_resolve":         "pays the pot back; as room_finish",
	"room_cancel":          "pays every stake back; as room_finish",
	"room_leave":           "pays a stake back; once for each seat",
	"room_kick":            "pays a stake back; once for each seat",
	"room_sweep":           "pays back and removes rooms that are over",
	"room_window_close":    "pays the pot back; as room_finish",
	"room_close_match":     "ends a match that nobody plays; one entry of the outbox, which is applied and removed",
	"webhook_commit":       "without it what was delivered is delivered again; the lists are bounded",
	"outbox_close":         "makes room; at most 1,000 dead letters of a shard",
	"prize_pay":            "pays out what was set aside; a line for each prize",
	"prize_void":           "returns what was set aside; a line of the ledger and two fields",
	"room_turn_skip":       "a turn must not stop a game with stakes; it replaces a field, and the events are bounded",
	"probe_write":          "what a full store pays back needs a replica too; a number for a minute",
	"presence_renew":       "keeps a node's players connected; one number for each node",
	"presence_claim":       "ends a lease; it replaces a number",
	"presence_end":         "ends a lease; one field for each shard, for a day",
	"presence_set":         "announces who is gone; a field for each seat and lease, and the trimmed list of events",
	"lock_acquire":         "elects who sweeps; one short key for each kind of work",
	"fencing_token_issue":  "elects who sweeps; one number",
	"work_name":            "names what to sweep; at most the games",
	"ledger_fold":          "adds entries up, after which they can be archived; a number for each token",
	"ledger_trim":          "makes room; a sum and two numbers for each game",
	"lines_trim":           "makes room; a number for each player",
	"refresh_rotate":       "keeps players signed in who may be owed; it replaces a digest",
	"external_token_use":   "keeps players signed in who may be owed; a number for each token that an issuer signed",
	"history_advance":      "a full store must not hide what it lost; a line for each game and epoch",
	"history_stop":         "stops money; one record",
	"history_accept":       "lets money go on; one record",
	"trail_append":         "a full store must not hide what was changed; 10,000 records of 6 KiB, 6,000 of a game",
	"user_end_sessions":    "ends sessions; one number for each player",
	"sessions_end":         "ends sessions; a short entry for each, dropped after a day",
	"user_change_kind":     "removes an account; it replaces a word",
	"user_unlink_identity": "removes an identity",
	"friend_remove":        "removes what is between two players",
	"board_schedule":       "ends seasons, which frees them; it replaces a number for each board",
	"asset_remove":         "makes room",
	"tour_remove":          "makes room",
	"board_hide":           "takes an entry out of sight; it replaces a letter",
	"board_remove":         "removes an entry",
	"board_seal":           "ends a season; a word for each shard",
	"tour_leave":           "pays a fee back; once for each entrant",
	"tour_start":           "fees must not wait for a full store; it replaces fields",
	"tour_report":          "ends a match; it replaces a record",
	"tour_refund":          "pays two fees back; once for each entrant",
	"tour_settle":          "pays fees back, or moves them to the prizes; a line for each entrant, once",
	"tour_advance":         "ends a tournament; a bounded list of payouts",
	"tour_cancel":          "begins to pay fees back; it replaces fields",
	"idempotency_begin":    "finds the first response to what ends; a digest for seconds, within the rate limits",
	"idempotency_release":  "removes a claim",
	"migration_remove":     "removes what was migrated",
}

func knownStatuses() map[string]bool {
	known := map[string]bool{scripts.OK: true, scripts.Stale: true, scripts.Replay: true}
	for _, code := range apierror.Codes() {
		known[code] = true
	}
	return known
}

// statusesIn returns the statuses that the code can return.
func statusesIn(code string, known map[string]bool) map[string]bool {
	statuses := map[string]bool{}
	for _, m := range returned.FindAllStringSubmatch(code, -1) {
		statuses[m[1]] = true
	}
	for _, m := range slices.Concat(plain.FindAllStringSubmatch(code, -1), built.FindAllStringSubmatch(code, -1)) {
		if known[m[1]] {
			statuses[m[1]] = true
		}
	}
	for _, m := range passed.FindAllStringSubmatch(code, -1) {
		if known[m[2]] && m[1] != "call" && m[1] != "pcall" {
			statuses[m[2]] = true
		}
	}
	return statuses
}

// builtins are the globals that Redis gives to a script, as far as we use them.
var builtins = []string{
	"redis", "KEYS", "ARGV", "cjson", "string", "table", "math", "tonumber", "tostring", "ipairs", "unpack", "pcall",
	"error",
}

// luaNames are the names by which a Lua file is bound to others.
type luaNames struct {
	defined  []string // locals at its top level: what an included library offers
	free     []string // read, and neither a local nor a builtin: what the includes must offer
	assigned []string // globals that are written
}

// namesIn compiles a file by itself: to the compiler, what another file defines is a global.
func namesIn(code string) (luaNames, error) {
	var names luaNames
	statements, err := parse.Parse(strings.NewReader(code), "")
	if err != nil {
		return names, err
	}
	chunk, err := lua.Compile(statements, "")
	if err != nil {
		return names, err
	}
	for _, statement := range statements {
		if local, ok := statement.(*luaast.LocalAssignStmt); ok {
			names.defined = append(names.defined, local.Names...)
		}
	}
	var visit func(f *lua.FunctionProto)
	visit = func(f *lua.FunctionProto) {
		for _, instruction := range f.Code {
			operation, operand := int(instruction>>26), instruction&(1<<18-1) // Lua 5.1: iABx
			if operation != lua.OP_GETGLOBAL && operation != lua.OP_SETGLOBAL {
				continue
			}
			name := f.Constants[operand].String()
			switch {
			case operation == lua.OP_SETGLOBAL:
				names.assigned = append(names.assigned, name)
			case !slices.Contains(builtins, name) && !slices.Contains(names.free, name):
				names.free = append(names.free, name)
			}
		}
		for _, inner := range f.FunctionPrototypes {
			visit(inner)
		}
	}
	visit(chunk)
	return names, nil
}

// libraryNames returns the names of every library.
func (p *project) libraryNames() (map[string]luaNames, []string) {
	var violations []string
	found := map[string]luaNames{}
	for name, library := range p.libraries() {
		names, err := namesIn(library.code)
		if err != nil {
			violations = append(violations, library.path+": "+err.Error())
		}
		found[name] = names
	}
	return found, violations
}

// checkNames returns a violation for each global that a file writes, or reads although neither Lua
// nor an included library defines it. It also returns the libraries whose names the file uses.
func checkNames(f luaFile, libraries map[string]luaNames) (used []string, violations []string) {
	names, err := namesIn(f.code)
	if err != nil {
		return nil, []string{f.path + ": " + err.Error()}
	}
	for _, name := range names.assigned {
		violations = append(violations, f.path+" assigns the global "+name)
	}
	for _, name := range names.free {
		at := slices.IndexFunc(f.header.Includes, func(include string) bool {
			return slices.Contains(libraries[include].defined, name)
		})
		if at < 0 {
			violations = append(violations, fmt.Sprintf("%s uses %s, which no library that it includes defines", f.path, name))
		} else if include := f.header.Includes[at]; !slices.Contains(used, include) {
			used = append(used, include)
		}
	}
	return used, violations
}

// Lua files without faults.
const (
	goodScript = `-- room_join: seats.
-- INCLUDES  clock
-- FLAGS     no-writes
-- KEYS      1 room
-- ARGV      1 user
-- RETURNS   ok room_full
if now_ms == user then return {'room_full'} end
return {'ok', room_key}
`
	goodLibrary = "-- lib_clock: reads the time.\nlocal now_ms = redis.call('TIME')[1]\n"

	// It needs the first one.
	secondLibrary = "-- lib_soon: adds.\n-- INCLUDES  clock\nlocal function soon() return now_ms + 1 end\n"

	keysLibrary = "-- lib_room: names keys.\n-- KEYS      1 room  2 events\nlocal a, b = room_key, events_key\n"
)

// changed returns the good script with parts replaced, old and new by turns, and its library.
func changed(pairs ...string) map[string]string {
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(goodScript, pairs[i]) {
			panic("the good script has no " + pairs[i])
		}
	}
	return map[string]string{
		"scripts/lib_clock.lua": goodLibrary,
		"scripts/room_join.lua": strings.NewReplacer(pairs...).Replace(goodScript),
	}
}

// ledgerScript returns a script that appends to a ledger, with parts replaced, old and new in turn.
func ledgerScript(pairs ...string) map[string]string {
	const text = `-- wallet_take: takes.
-- KEYS      1 ledger
-- ARGV      1 nonce
-- LEDGER    always
-- RETURNS   ok
redis.call('RPUSH', ledger_key, nonce)
return 'ok'
`
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			panic("the script has no " + pairs[i])
		}
	}
	return map[string]string{"scripts/wallet_take.lua": strings.NewReplacer(pairs...).Replace(text)}
}

// withLibrary returns changed with one more library, which may not be included.
func withLibrary(name, text string, pairs ...string) map[string]string {
	files := changed(pairs...)
	files["scripts/lib_"+name+".lua"] = text
	return files
}

var scriptRules = []rule{
	{
		name: "headers can be read",
		check: func(p *project) (violations []string) {
			_, headers := p.luaFiles()
			_, loads := p.scripts()
			for _, err := range slices.Concat(headers, loads) {
				violations = append(violations, err.Error())
			}
			return violations
		},
		samples: map[string]map[string]string{
			"another name":              changed("room_join: seats", "room_leave: seats"),
			"an absent library":         changed("clock", "clock money"),
			"numbers with a gap":        changed("1 room", "2 room"),
			"a number without name":     changed("1 room", "1"),
			"a name without number":     changed("1 room", "room"),
			"an unknown flag":           changed("no-writes", "no-cluster"),
			"an unknown line":           changed("-- ARGV", "-- AGRV"),
			"a ledger without its line": ledgerScript("-- LEDGER    always\n", ""),
			"a line without a ledger":   ledgerScript("1 ledger", "1 book"),
			"two lines of the ledger":   ledgerScript("-- RETURNS", "-- LEDGER    always\n-- RETURNS"),
			"an unknown rule":           ledgerScript("always", "sometimes"),
			"more than the rule":        ledgerScript("always", "always, but for one"),
			"no condition":              ledgerScript("always", "if"),
			"no reason":                 ledgerScript("always", "never"),
			"an entry without a nonce":  ledgerScript("1 nonce", "1 mark"),
			"a reader with a rule": ledgerScript("-- LEDGER", "-- FLAGS     no-writes\n-- LEDGER",
				"redis.call('RPUSH', ledger_key, nonce)\n", ""),
			"an unknown confirmation":    ledgerScript("-- RETURNS", "-- CONFIRM   yes\n-- RETURNS"),
			"no reason without replicas": ledgerScript("-- RETURNS", "-- CONFIRM   no\n-- RETURNS"),
			"an unknown layout":          changed("{'ok', room_key}", "{'ok', PACK(room_dead)}"),
			"numbers that do not go on":  withLibrary("room", keysLibrary, "clock", "clock room", "1 room", "4 wallet"),
		},
	},
	{
		name: "headers name the KEYS and ARGV that the code reads",
		check: func(p *project) (violations []string) {
			list, _ := p.scripts()
			for _, s := range list {
				code := p.ownText(s)
				if numberedParam.MatchString(code) {
					violations = append(violations, s.Name+" reads KEYS or ARGV by a number: give it a name in the header")
				}
				for array, params := range map[string]scripts.Params{"KEYS": s.Keys, "ARGV": s.Args} {
					more, open := moreParams[array].MatchString(code), params.Rest != ""
					switch {
					case more && !open:
						violations = append(violations, fmt.Sprintf(
							"%s reads %s by a variable: its header must end in \"then …\"", s.Name, array))
					case !more && open:
						violations = append(violations, fmt.Sprintf(
							"%s declares %s without a number (%q) and reads none", s.Name, array, params.Rest))
					}
					for _, name := range params.Names {
						if array == "KEYS" {
							if len(params.Names) == 1 || more { // it chooses the node of a Cluster; a library reads it
								continue
							}
							name += "_key"
						}
						if !regexp.MustCompile(`\b` + name + `\b`).MatchString(code) {
							violations = append(violations, fmt.Sprintf("%s declares the %s %s and does not use it", s.Name, array, name))
						}
					}
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"a key too many":            changed("1 room\n", "1 room  2 events\n"),
			"an argument too many":      changed("1 user", "1 user  2 game"),
			"an argument by its number": changed("{'ok', room_key}", "{'ok', ARGV[1]}"),
			"an open list":              changed("{'ok', room_key}", "{'ok', #ARGV}"),
			"open without use":          changed("1 user", "1 user  then each of the others"),
			"unpacked at large":         changed("{'ok', room_key}", "{'ok', unpack(KEYS)}"),
		},
	},
	{
		name: "keys come through KEYS",
		check: func(p *project) (violations []string) {
			list, _ := p.luaFiles()
			for _, f := range list {
				for line := range strings.Lines(wrapped.ReplaceAllString(f.code, "$1 ")) {
					line = strings.TrimSpace(line)
					texts := strings.Join(literal.FindAllString(line, -1), " ")
					if madeUpKey.MatchString(line) || extended.MatchString(line) || key.MatchString(texts) {
						violations = append(violations, f.path+" makes up a key: "+line)
					}
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"a made-up key": changed("{'ok', room_key}", "{'ok', redis.call('GET', room .. ':events')}"),
			"a spelled key": changed("{'ok', room_key}", "{'ok', redis.call('GET', '{e:main}:x')}"),
			"in a library":  withLibrary("room", "-- lib_room: is.\nredis.call('GET', '{e:main}:x')\n"),
		},
	},
	{
		name: "a script returns the statuses of its header, and error codes know them",
		check: func(p *project) (violations []string) {
			known := knownStatuses()
			list, _ := p.scripts()
			for _, s := range list {
				code := withoutComments(s.Source)
				for _, status := range s.Statuses {
					if !known[status] {
						violations = append(violations, s.Name+" declares "+status+", which is not in package apierror")
					}
					if !strings.Contains(code, "'"+status+"'") {
						violations = append(violations, s.Name+" declares "+status+" and never returns it")
					}
				}
				for _, status := range slices.Sorted(maps.Keys(statusesIn(code, known))) {
					if !slices.Contains(s.Statuses, status) {
						violations = append(violations, s.Name+" returns "+status+", which its header does not declare")
					}
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"never returned":  changed("ok room_full", "ok room_full room_closed"),
			"not declared":    changed("ok room_full", "ok"),
			"nobody knows it": changed("room_full", "room_fulll"),
			"as a plain text": changed("return {'ok', room_key}", "return 'sold_out'"),
			"through a call":  changed("return {'ok', room_key}", "return save_receipt(room, {'sold_out'})"),
			"given to a call": changed("return {'ok', room_key}", "return refuse('sold_out')"),
			"of a library": withLibrary("room", "-- lib_room: is.\nlocal function f() return {'sold_out'} end\n",
				"clock", "clock room"),
		},
	},
	{
		name: "a script runs on a full store for a listed reason only, and one that only reads says so",
		check: func(p *project) (violations []string) {
			list, _ := p.scripts()
			for _, s := range list {
				flags := strings.Join(s.Flags, " ")
				reads := !writeCommand.MatchString(withoutComments(s.Source))
				switch {
				case reads && flags != scripts.NoWrites:
					violations = append(violations, s.Name+" only reads and has not the flag no-writes alone")
				case !reads && slices.Contains(s.Flags, scripts.NoWrites):
					violations = append(violations, s.Name+" writes and has the flag no-writes")
				case slices.Contains(s.Flags, scripts.AllowOOM) != (runsOnFullStore[s.Name] != ""):
					violations = append(violations, s.Name+" has the flag allow-oom and no reason in the list, or only the reason")
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"it does not say that it only reads": changed("-- FLAGS     no-writes\n", ""),
			"it writes":                          changed("{'ok', room_key}", "{'ok', redis.call('SET', room, 1)}"),
			"it has no reason": changed("no-writes", "allow-oom",
				"{'ok', room_key}", "{'ok', redis.call('SET', room, 1)}"),
			"its flag is missing": {
				"scripts/room_finish.lua": "-- room_finish: ends.\n-- KEYS      1 room\n-- RETURNS   ok\n" +
					"redis.call('DEL', room_key)\n",
			},
		},
	},
	{
		name: "a script that appends to a ledger says when, and no other one does",
		check: func(p *project) (violations []string) {
			list, _ := p.scripts()
			for _, s := range list {
				appends := appendsToLedger.MatchString(withoutComments(s.Source))
				says := s.Ledger.When == scripts.LedgerAlways || s.Ledger.When == scripts.LedgerIf
				switch {
				case appends && !says:
					violations = append(violations, s.Name+" appends to a ledger, and its header does not say when")
				case !appends && says:
					violations = append(violations, s.Name+" appends nothing to a ledger, and its header says that it does")
				case says && s.Unconfirmed != "":
					violations = append(violations, s.Name+" moves money, and no replica needs to have it")
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"a line is missing, and the key has another name": ledgerScript("-- LEDGER    always\n", "",
				"1 ledger", "1 book"),
			"it never appends":  ledgerScript("always", "never: it reads the entries"),
			"nothing is there":  ledgerScript("redis.call('RPUSH', ledger_key, nonce)\n", ""),
			"no replica has it": ledgerScript("-- RETURNS", "-- CONFIRM   no: nobody asks\n-- RETURNS"),
			"through a library": {
				"scripts/lib_entry.lua": "-- lib_entry: posts.\nlocal function post(ledger_key, nonce)\n" +
					"  redis.call('RPUSH', ledger_key, nonce)\nend\n",
				"scripts/wallet_take.lua": "-- wallet_take: takes.\n-- INCLUDES  entry\n-- KEYS      1 book\n" +
					"-- ARGV      1 nonce\n-- RETURNS   ok\npost(book_key, nonce)\nreturn 'ok'\n",
			},
		},
	},
	{
		name: "libraries include what they name, and are all of use",
		check: func(p *project) (violations []string) {
			libraries := p.libraries()
			names, violations := p.libraryNames()
			included := map[string]bool{}
			list, _ := p.luaFiles()
			for _, f := range list {
				definedIn := map[string]string{}
				for _, include := range f.header.Includes {
					included[include] = true
					for _, defined := range names[include].defined {
						if other, twice := definedIn[defined]; twice {
							violations = append(violations, fmt.Sprintf("%s is defined by the libraries %s and %s, and %s includes both",
								defined, other, include, f.path))
						}
						definedIn[defined] = include
					}
				}
			}
			for _, name := range slices.Sorted(maps.Keys(libraries)) {
				library := libraries[name]
				used, more := checkNames(library, names)
				violations = append(violations, more...)
				for _, include := range library.header.Includes {
					if !slices.Contains(used, include) {
						violations = append(violations, fmt.Sprintf("%s includes %s and uses nothing of it", library.path, include))
					}
				}
				if !included[name] && name != scripts.FeedLibrary {
					violations = append(violations, "no script includes "+name)
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"nothing of it is used": withLibrary("room", "-- lib_room: is.\n-- INCLUDES  clock\nlocal x = 1\n",
				"clock", "clock room"),
			"it is not included":    withLibrary("room", "-- lib_room: is.\nlocal x = now_ms\n", "clock", "clock room"),
			"a name of two":         withLibrary("room", "-- lib_room: is.\nlocal now_ms = 1\n", "clock", "clock room"),
			"no script includes it": withLibrary("room", "-- lib_room: is.\nlocal x = 1\n"),
			"it is no Lua":          withLibrary("room", "-- lib_room: is.\nlocal x = = 1\n", "clock", "clock room"),
			"it writes a global":    withLibrary("room", "-- lib_room: is.\nlast = 1\n", "clock", "clock room"),
		},
	},
	{
		name: "scripts include what they need, in order and no more",
		check: func(p *project) (violations []string) {
			libraries := p.libraries()
			names, _ := p.libraryNames()
			list, _ := p.luaFiles()
			for _, f := range list {
				if strings.HasPrefix(f.name(), scripts.LibraryPrefix) {
					continue
				}
				includes := f.header.Includes
				needed, more := checkNames(f, names)
				violations = append(violations, more...)
				for i := 0; i < len(needed); i++ { // what is needed grows by what that needs
					for _, include := range libraries[needed[i]].header.Includes {
						if !slices.Contains(needed, include) {
							needed = append(needed, include)
						}
					}
				}
				for _, include := range needed {
					if !slices.Contains(includes, include) {
						violations = append(violations, fmt.Sprintf("%s needs %s and does not include it", f.path, include))
					}
				}
				for i, include := range includes {
					if !slices.Contains(needed, include) || slices.Contains(includes[:i], include) {
						violations = append(violations, fmt.Sprintf("%s includes %s and does not need it, or not again", f.path, include))
					}
					for _, before := range libraries[include].header.Includes {
						if slices.Contains(includes[i:], before) {
							violations = append(violations, fmt.Sprintf("%s: %s must come before %s", f.path, before, include))
						}
					}
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"a useless library":                  changed("now_ms == user", "room_key == user"),
			"one twice":                          changed("clock", "clock clock"),
			"a missing library":                  changed("-- INCLUDES  clock\n", ""),
			"a global":                           changed("{'ok', room_key}", "{'ok', room_key}\nremembered = room_key"),
			"no Lua":                             changed("{'ok', room_key}", "{'ok', local}"),
			"a library's own library is missing": withLibrary("soon", secondLibrary, "clock", "soon", "now_ms", "soon()"),
			"a library's own library is behind": withLibrary("soon", secondLibrary,
				"clock", "soon clock", "now_ms", "soon()"),
		},
	},
	{
		name: "every script has its Go name, once, and a caller",
		check: func(p *project) (violations []string) {
			registered, callers := map[string][]string{}, map[string]bool{}
			for _, s := range p.code {
				ast.Inspect(s.file, func(n ast.Node) bool {
					switch x := n.(type) {
					case *ast.ValueSpec:
						for i, v := range x.Values {
							call, ok := v.(*ast.CallExpr)
							if !ok || s.top() != "scripts" || len(call.Args) != 1 {
								continue
							}
							if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "mustLoad" {
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
			list, _ := p.luaFiles()
			for _, f := range list {
				if strings.HasPrefix(f.name(), scripts.LibraryPrefix) {
					continue
				}
				want := goName(f.name())
				if got := registered[f.name()]; len(got) != 1 || got[0] != want {
					violations = append(violations, fmt.Sprintf("%s is loaded as %v; want %s, once", f.path, got, want))
				}
				if !callers[want] {
					violations = append(violations, "nothing runs scripts."+want)
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"not loaded": {"scripts/room_join.lua": goodScript, "rooms/store.go": `package rooms; var x = scripts.RoomJoin`},
			"misnamed": {
				"scripts/room_join.lua": goodScript, "scripts/list.go": `package scripts; var JoinRoom = mustLoad("room_join")`,
				"rooms/store.go": `package rooms; var x = scripts.RoomJoin`,
			},
			"never run": {
				"scripts/room_join.lua": goodScript, "scripts/list.go": `package scripts; var RoomJoin = mustLoad("room_join")`,
			},
		},
	},
	{
		name: "a call of a script gives each of its arguments",
		check: func(p *project) (violations []string) {
			want := p.argCounts()
			for _, s := range p.code {
				if s.isTest() || s.top() == "scripts" {
					continue
				}
				ast.Inspect(s.file, func(n ast.Node) bool {
					switch x := n.(type) {
					case *ast.CompositeLit:
						name := scriptsName(x.Type)
						if count, ok := want[name]; ok && len(x.Elts) != count {
							violations = append(violations, fmt.Sprintf("%s: %s has %d of its %d arguments",
								p.set.Position(x.Pos()), name, len(x.Elts), count))
						}
						if want[name] > 0 {
							violations = append(violations, p.swappedFields(x, name)...)
						}
					case *ast.CallExpr:
						violations = append(violations, p.otherArgs(x, want)...)
					}
					return true
				})
			}
			return violations
		},
		samples: map[string]map[string]string{
			"one is missing": {
				"scripts/wallet_take.lua": ledgerScript()["scripts/wallet_take.lua"],
				"rooms/store.go":          `package rooms; var x = scripts.WalletTakeArgs{}.List()`,
			},
			"two are swapped": {
				"scripts/wallet_take.lua": ledgerScript("1 nonce", "1 nonce  2 user")["scripts/wallet_take.lua"],
				"rooms/store.go":          `package rooms; var x = scripts.WalletTakeArgs{Nonce: c.user, User: c.nonce}.List()`,
			},
			"those of another script": {
				"scripts/wallet_take.lua": ledgerScript()["scripts/wallet_take.lua"],
				"scripts/wallet_give.lua": ledgerScript("wallet_take", "wallet_give")["scripts/wallet_take.lua"],
				"rooms/store.go":          `package rooms; var x = run(scripts.WalletGive, scripts.WalletTakeArgs{N: 1}.List())`,
			},
		},
	},
	{
		name: "scripts emit only events of package events",
		check: func(p *project) (violations []string) {
			known := map[string]bool{}
			for _, e := range events.All() {
				known[e.Name] = true
			}
			list, _ := p.luaFiles()
			for _, f := range list {
				for _, m := range eventType.FindAllStringSubmatch(f.code, -1) {
					if !known[m[1]] {
						violations = append(violations, f.path+" emits "+m[1]+", which is not in package events")
					}
				}
			}
			return violations
		},
		samples: map[string]map[string]string{"an unknown event": changed("{'ok', room_key}", "{'ok', 'room.exploded'}")},
	},
}

// argCounts returns how many fields the types of arguments have, by their names.
func (p *project) argCounts() map[string]int {
	counts := map[string]int{}
	list, _ := p.scripts()
	for _, s := range list {
		count := len(s.OwnArgs.Names)
		for _, library := range s.Libraries {
			if n := len(library.Args.Names); n > 0 {
				counts[goName(strings.TrimPrefix(library.Name, scripts.LibraryPrefix))+"Args"] = n
				count++ // they are embedded
			}
		}
		if count > 0 {
			counts[goName(s.Name)+"Args"] = count
		}
	}
	return counts
}

// swappedFields returns a violation for each value that has the name of another field, unless the
// field's own name has it, as previous_sum has sum.
func (p *project) swappedFields(literal *ast.CompositeLit, typeName string) (violations []string) {
	fields := map[string]bool{}
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			fields[strings.ToLower(pair.Key.(*ast.Ident).Name)] = true
		}
	}
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		field, value := strings.ToLower(pair.Key.(*ast.Ident).Name), strings.ToLower(lastName(pair.Value))
		if !strings.Contains(field, value) && fields[value] {
			violations = append(violations, fmt.Sprintf("%s: %s gets %s as %s",
				p.set.Position(pair.Pos()), typeName, value, field))
		}
	}
	return violations
}

// lastName returns user for c.user, string(c.user), c.user.String() and joinInts(c.user); "" for a
// value without a name.
func lastName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.UnaryExpr:
		return lastName(x.X)
	case *ast.CallExpr:
		if of, ok := x.Fun.(*ast.Ident); ok && strings.HasSuffix(of.Name, "Of") {
			return strings.TrimSuffix(of.Name, "Of") // digestOf(lines) is a digest
		}
		if len(x.Args) == 1 {
			return lastName(x.Args[0])
		}
		if method, ok := x.Fun.(*ast.SelectorExpr); ok && len(x.Args) == 0 {
			return lastName(method.X)
		}
	}
	return ""
}

// otherArgs returns a violation when a call has a script and the arguments of another one.
func (p *project) otherArgs(call *ast.CallExpr, types map[string]int) (violations []string) {
	script := ""
	for _, arg := range call.Args {
		if name := scriptsName(arg); name != "" && types[name+"Args"] > 0 {
			script = name
		}
	}
	if script == "" {
		return nil
	}
	for _, arg := range call.Args {
		list, ok := arg.(*ast.CallExpr)
		if !ok {
			continue
		}
		of, ok := list.Fun.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		if literal, ok := of.X.(*ast.CompositeLit); ok {
			if name := scriptsName(literal.Type); types[name] > 0 && name != script+"Args" {
				violations = append(violations, fmt.Sprintf("%s: %s gets %s", p.set.Position(call.Pos()), script, name))
			}
		}
	}
	return violations
}

// scriptsName returns RoomJoin for scripts.RoomJoin, "" for what is not of package scripts.
func scriptsName(e ast.Expr) string {
	if selector, ok := e.(*ast.SelectorExpr); ok {
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "scripts" {
			return selector.Sel.Name
		}
	}
	return ""
}

// goName returns NounVerb for noun_verb.
func goName(file string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(file, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func TestTheGoodScriptBreaksNoRule(t *testing.T) {
	files := changed()
	files["scripts/list.go"] = `package scripts; var RoomJoin = mustLoad("room_join")`
	files["rooms/store.go"] = `package rooms; var x = scripts.RoomJoin`
	for _, r := range scriptRules {
		for _, violation := range r.check(sampleProject(t, files)) {
			t.Errorf("%s: %s", r.name, violation)
		}
	}
}
