package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// key matches a spelled Redis key: the start of a hash tag of package keys, or the end of any.
var key = regexp.MustCompile(`\{(e:|r\d|r$|u:|f:|g:|p\}|l:|t:|q:|i:|b:)|^\}:`)

const (
	maxCodeColumns    = 120
	maxCommentColumns = 100
)

// longLines returns the lines of a file that are too long. A tab counts as one column. inComment
// has the numbers of the lines with a comment only. Lines that begin with "--" are comments, too.
func longLines(name, text string, inComment map[int]bool) (violations []string) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		limit := maxCodeColumns
		if inComment[n] || strings.HasPrefix(strings.TrimSpace(line), "--") {
			limit = maxCommentColumns
		}
		if columns := utf8.RuneCountInString(strings.TrimRight(line, "\n")); columns > limit {
			violations = append(violations, fmt.Sprintf("%s:%d: has %d columns, at most %d", name, n, columns, limit))
		}
	}
	return violations
}

// commentLines returns the numbers of the lines of a file that are comment and nothing else.
func commentLines(p *project, s source) map[int]bool {
	lines := map[int]bool{}
	all := strings.Split(s.text, "\n")
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			from, to := p.set.Position(c.Pos()), p.set.Position(c.End())
			for n := from.Line; n <= to.Line; n++ {
				lines[n] = n > from.Line || strings.TrimSpace(all[n-1][:from.Column-1]) == ""
			}
		}
	}
	return lines
}

// moneyPackages count in minor units.
var moneyPackages = []string{
	"archiver", "assets", "audit", "ledger", "ledgerstore", "limits", "prizes", "rooms", "wallet",
}

// pollingHelper matches the names of helpers that may use a timer in tests.
var pollingHelper = regexp.MustCompile(`^(wait|poll|retry|Wait|Poll|Retry)`)

// timers returns the uses of time.Sleep and its like below n, except in a case of a select that
// fails the test: that is a deadline.
func timers(n ast.Node) (uses []*ast.SelectorExpr) {
	ast.Inspect(n, func(n ast.Node) bool {
		if c, ok := n.(*ast.CommClause); ok && failsTest(c.Body) {
			return false
		}
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"Sleep", "After", "NewTimer"}, s.Sel.Name) {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
				uses = append(uses, s)
			}
		}
		return true
	})
	return uses
}

// failsTest reports whether a body begins with t.Fatal, t.Error or one of their like.
func failsTest(body []ast.Stmt) bool {
	if len(body) == 0 {
		return false
	}
	statement, ok := body[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := statement.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Fatal", "Fatalf", "Error", "Errorf"}, f.Sel.Name)
}

var codeRules = []rule{
	{
		name: "keys are spelled in keys only",
		check: func(p *project) (violations []string) {
			for _, s := range p.code {
				if s.isTest() || s.top() == "keys" {
					continue
				}
				ast.Inspect(s.file, func(n ast.Node) bool {
					l, ok := n.(*ast.BasicLit)
					if ok && l.Kind == token.STRING && key.MatchString(strings.Trim(l.Value, "\"`")) {
						violations = append(violations, p.position(l.Pos())+": "+l.Value+" spells a key")
					}
					return true
				})
			}
			return violations
		},
		samples: map[string]map[string]string{
			"a whole key":        {"rooms/a.go": `package rooms; var x = "{e:main}:wallet:7"`},
			"the start of a tag": {"rooms/a.go": `package rooms; var x = "{r" + n`},
			"the end of a tag":   {"rooms/a.go": `package rooms; var x = n + "}:room"`},
		},
	},
	{
		// What is written into a store has the layout of the store, DB.Layout. The newest one is what a
		// build may read.
		name: "only what compares layouts asks for the newest",
		check: func(p *project) (violations []string) {
			for _, s := range p.code {
				if s.isTest() || slices.Contains([]string{"redisdb", "nodes", "upgrade", "cmd"}, s.top()) {
					continue
				}
				ast.Inspect(s.file, func(n ast.Node) bool {
					if i, ok := n.(*ast.Ident); ok && i.Name == "NewestLayout" {
						violations = append(violations, p.position(i.Pos())+": NewestLayout is not what is written: use DB.Layout")
					}
					return true
				})
			}
			return violations
		},
		samples: map[string]map[string]string{
			"a domain": {"rooms/a.go": `package rooms; var text = layout.Join(redisdb.NewestLayout())`},
		},
	},
	{
		name: "every package has one package comment",
		check: func(p *project) (violations []string) {
			comments := map[string]int{}
			for _, s := range p.code {
				comments[s.dir()] += 0
				if s.file.Doc != nil {
					comments[s.dir()]++
				}
			}
			for _, dir := range slices.Sorted(maps.Keys(comments)) {
				if n := comments[dir]; n != 1 {
					violations = append(violations, fmt.Sprintf("%s: has %d package comments", dir, n))
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"none": {"rooms/a.go": "package rooms"},
			"two": {
				"rooms/a.go": "// Package rooms is.\npackage rooms",
				"rooms/b.go": "// Package rooms is too.\npackage rooms",
			},
		},
	},
	{
		name: "money has no floating point",
		check: func(p *project) (violations []string) {
			floats := []string{"float64", "float32", "ParseFloat", "FormatFloat"}
			for _, s := range p.code {
				if s.isTest() || !slices.Contains(moneyPackages, s.top()) {
					continue
				}
				ast.Inspect(s.file, func(n ast.Node) bool {
					if f, ok := n.(*ast.Field); ok && len(f.Names) == 1 && f.Names[0].Name == "Score" {
						return false // what a game counts is not money
					}
					if i, ok := n.(*ast.Ident); ok && slices.Contains(floats, i.Name) {
						violations = append(violations, p.position(i.Pos())+": "+i.Name)
					}
					return true
				})
			}
			return violations
		},
		samples: map[string]map[string]string{"a float": {"wallet/a.go": `package wallet; var price float64`}},
	},
	{
		// A test that waits for a time is slow on a fast machine and fails on a slow one. So only
		// helpers named for it may wait: each checks a condition, and its timer paces the checks.
		name: "tests wait for a condition, never for time",
		check: func(p *project) (violations []string) {
			for _, s := range p.code {
				switch {
				case !s.isTest() && !strings.HasPrefix(s.path, "internal/store/redisdb/redistest/"):
				case strings.HasPrefix(s.path, "tests/bench/"): // a benchmark runs for a time
				case slices.Contains(s.imports(), "testing/synctest"): // a fake clock: sleeping takes no time
				default:
					for _, d := range s.file.Decls {
						f, ok := d.(*ast.FuncDecl)
						if ok && (pollingHelper.MatchString(f.Name.Name) || strings.HasPrefix(f.Name.Name, "Benchmark")) {
							continue
						}
						for _, call := range timers(d) {
							violations = append(violations, p.position(call.Pos())+": time."+call.Sel.Name+
								" outside of a helper named wait…, poll… or retry…")
						}
					}
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"a sleep":              {"rooms/a_test.go": `package rooms; import "time"; func TestIt() { time.Sleep(1) }`},
			"a sleep by a timer":   {"rooms/a_test.go": `package rooms; import "time"; func TestIt() { <-time.After(1) }`},
			"by a timer's channel": {"rooms/a_test.go": `package rooms; import "time"; func see() { <-time.NewTimer(1).C }`},
			"a select that goes on": {
				"rooms/a_test.go": `package rooms; import "time"; func see() { select { case <-c: case <-time.After(1): } }`,
			},
			"in shared fixtures": {"tests/nodetest/a.go": `package nodetest; import "time"; func Start() { time.Sleep(1) }`},
		},
	},
	{
		// melody's broadcasts visit every session under its lock, and one of them stops at the first
		// closed session. A write that bypasses a session's pump panics in gorilla. So realtime has an
		// index of its own and sends by a session's Write only.
		name: "nobody broadcasts through melody or writes past its pump",
		check: func(p *project) (violations []string) {
			forbidden := []string{"WriteMessage", "WritePreparedMessage", "WriteJSON", "NextWriter", "CloseWithMsg", "Sessions"}
			for _, s := range p.code {
				if s.isTest() || s.top() != "realtime" {
					continue
				}
				ast.Inspect(s.file, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok {
						return true
					}
					f, ok := call.Fun.(*ast.SelectorExpr)
					if ok && (strings.HasPrefix(f.Sel.Name, "Broadcast") || slices.Contains(forbidden, f.Sel.Name)) {
						violations = append(violations, p.position(f.Pos())+": "+f.Sel.Name)
					}
					return true
				})
			}
			return violations
		},
		samples: map[string]map[string]string{
			"a broadcast":         {"realtime/a.go": `package realtime; func f() { m.BroadcastFilter(nil, nil) }`},
			"a write of its own":  {"realtime/a.go": `package realtime; func f() { s.Conn().WriteMessage(1, nil) }`},
			"a close under locks": {"realtime/a.go": `package realtime; func f() { m.CloseWithMsg(nil) }`},
		},
	},
	{
		name: "nothing is left for later",
		check: func(p *project) (violations []string) {
			later := regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
			for _, c := range p.comments() {
				if word := later.FindString(c.text); word != "" && !c.isArchtest() {
					violations = append(violations, c.position+": "+word)
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"in Go":  {"rooms/a.go": "package rooms\n\n// TODO: the rest"},
			"in Lua": {"scripts/a.lua": "-- FIXME"},
		},
	},
	{
		name: "a line of code has at most 120 columns, a line of comment 100",
		check: func(p *project) (violations []string) {
			for _, s := range p.code {
				if !ast.IsGenerated(s.file) {
					violations = append(violations, longLines(s.path, s.text, commentLines(p, s))...)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(p.lua)) {
				violations = append(violations, longLines(name, p.lua[name], nil)...)
			}
			return violations
		},
		samples: map[string]map[string]string{
			"a long statement":     {"rooms/a.go": "package rooms\n\nvar x = `" + strings.Repeat("x", 112) + "`"},
			"a long comment":       {"rooms/a.go": "package rooms\n\n// " + strings.Repeat("x", 98)},
			"a long block comment": {"rooms/a.go": "package rooms\n\n/*\n" + strings.Repeat("x", 101) + "\n*/"},
			"a long Lua statement": {"scripts/a.lua": "local x = '" + strings.Repeat("x", 109) + "'"},
			"a long Lua comment":   {"scripts/a.lua": "-- " + strings.Repeat("x", 98)},
		},
	},
	{
		name: "a folder holds something and has a name that says what",
		check: func(p *project) (violations []string) {
			vague := []string{"util", "utils", "manager", "helper", "helpers", "common", "misc"}
			for dir, files := range p.folders {
				if files == 0 {
					violations = append(violations, dir+": is empty")
				}
				if slices.Contains(vague, path.Base(dir)) {
					violations = append(violations, dir+": does not say what it holds")
				}
			}
			return violations
		},
		samples: map[string]map[string]string{"a vague name": {"rooms/util/a.go": "package util"}},
	},
}
