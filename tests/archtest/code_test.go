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
)

// arrows says which packages of the project each folder may import. Test files are free, and so are cmd and tests.
var arrows = map[string][]string{
	"principal": nil, "wire": nil, "cache": nil, "secret": nil, "apierror": nil, "keys": nil, "events": nil, "config": nil, "scripts": nil,
	"redisdb": {"apierror", "keys", "scripts", "redisdb"},

	"wallet": ground, "users": ground, "games": ground,
	"rooms": domain, "assets": domain, "auth": domain, "progress": domain, "leaderboards": domain, "fraud": domain, "ads": domain,
	"idempotency": ground, "realtime": ground,
	"handlers": {
		"events", "apierror", "cache", "principal", "idempotency", "wire", "users", "games", "wallet", "rooms", "assets", "auth", "progress", "leaderboards", "fraud", "ads", "realtime", "sdk", "web",
	},
	"sdk": nil, "web": nil,
}

var (
	ground = []string{"events", "apierror", "cache", "idempotency", "keys", "principal", "redisdb", "scripts", "secret", "wire"}
	domain = append([]string{"wallet", "users", "games"}, ground...)
)

// onlyIn says which files may import what; "./keys" is the project's own. A pattern is that of path.Match; one that
// ends in "/" is a folder with all below it.
var onlyIn = map[string][]string{
	"./keys":                          storeFiles,
	"./scripts":                       append([]string{"idempotency/receipt.go", "redisdb/"}, storeFiles...),
	"./redisdb/redistest":             nil,
	"github.com/redis/go-redis":       storeFiles,
	"github.com/go-redsync":           {"redisdb/"},
	"github.com/alicebob":             {"redisdb/"},
	"github.com/gin-gonic":            {"handlers/"},
	"github.com/go-playground":        {"handlers/"},
	"github.com/olahol/melody":        {"realtime/", "handlers/socket*.go"},
	"github.com/gorilla/websocket":    {"realtime/", "handlers/socket*.go", "cmd/parlor/tail.go"},
	"github.com/golang-jwt":           {"auth/"},
	"github.com/spf13":                {"cmd/"},
	"go.yaml.in":                      {"cmd/"},
	"github.com/hashicorp/golang-lru": {"cache/"},
	"github.com/MicahParks":           {"auth/"},
	"github.com/getkin":               nil,
	"pgregory.net/rapid":              nil,
	"testing":                         {"redisdb/redistest/"},
}

var storeFiles = []string{"*/store.go", "*/store_*.go", "redisdb/", "realtime/pubsub.go"}

func matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if strings.HasSuffix(p, "/") {
			return strings.HasPrefix(name, p)
		}
		ok, _ := path.Match(p, name)
		return ok
	})
}

// key finds a spelled Redis key: one of the hash tags of package keys, or the end of any.
var key = regexp.MustCompile(`\{(e:|r\d|r$|u:|f:|g:|p\}|l:|t:|q:|i:|b:)|^\}:`)

var codeRules = []rule{
	{
		name: "imports follow the arrows",
		ask: func(h *house) (complaints []string) {
			for _, s := range h.code {
				if s.isTest() || s.top() == "cmd" {
					continue
				}
				may, known := arrows[s.top()]
				if !known {
					complaints = append(complaints, s.path+": the folder "+s.top()+" has no arrows in tests/house")
				}
				for _, i := range s.imports() {
					own, ok := strings.CutPrefix(i, "./")
					to, _, _ := strings.Cut(own, "/")
					if ok && !slices.Contains(may, to) {
						complaints = append(complaints, s.path+" imports "+own+", against the arrows")
					}
				}
			}
			return complaints
		},
		breaks: map[string]map[string]string{
			"two domains of the lowest row": {"wallet/a.go": `package wallet; import _ "` + module + `/users"`},
			"realtime knows a domain":       {"realtime/a.go": `package realtime; import _ "` + module + `/rooms"`},
			"the edge knows the store":      {"handlers/a.go": `package handlers; import _ "` + module + `/redisdb"`},
			"a folder nobody planned":       {"surprise/a.go": `package surprise`},
		},
	},
	{
		name: "a library has its place",
		ask: func(h *house) (complaints []string) {
			for _, s := range h.code {
				if s.isTest() {
					continue
				}
				for _, i := range s.imports() {
					for library, places := range onlyIn {
						if (i == library || strings.HasPrefix(i, library+"/")) && !matches(s.place(), places) {
							complaints = append(complaints, fmt.Sprintf("%s imports %s, which belongs in %v", s.path, i, places))
						}
					}
				}
			}
			return complaints
		},
		breaks: map[string]map[string]string{
			"go-redis outside a store":        {"rooms/service.go": `package rooms; import _ "github.com/redis/go-redis/v9"`},
			"keys outside a store":            {"rooms/service.go": `package rooms; import _ "` + module + `/keys"`},
			"gin outside the edge":            {"rooms/store.go": `package rooms; import _ "github.com/gin-gonic/gin"`},
			"melody in a handler of requests": {"handlers/rooms.go": `package handlers; import _ "github.com/olahol/melody"`},
		},
	},
	{
		name: "the ground floor stands on the standard library",
		ask: func(h *house) (complaints []string) {
			for _, s := range h.code {
				if s.isTest() || !slices.Contains([]string{"keys", "events", "apierror", "config", "principal", "scripts", "secret"}, s.top()) {
					continue
				}
				for _, i := range s.imports() {
					if first, _, _ := strings.Cut(i, "/"); first != "." && strings.Contains(first, ".") {
						complaints = append(complaints, s.path+" imports "+i)
					}
				}
			}
			return complaints
		},
		breaks: map[string]map[string]string{"a library": {"apierror/a.go": `package apierror; import _ "github.com/google/uuid"`}},
	},
	{
		name: "keys are spelled in keys only",
		ask: func(h *house) (complaints []string) {
			for _, s := range h.code {
				if s.isTest() || s.top() == "keys" {
					continue
				}
				ast.Inspect(s.file, func(n ast.Node) bool {
					if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && key.MatchString(strings.Trim(l.Value, "\"`")) {
						complaints = append(complaints, h.at(l.Pos())+": "+l.Value+" spells a key")
					}
					return true
				})
			}
			return complaints
		},
		breaks: map[string]map[string]string{
			"a whole key":        {"rooms/a.go": `package rooms; var x = "{e:main}:wallet:7"`},
			"the start of a tag": {"rooms/a.go": `package rooms; var x = "{r" + n`},
			"the end of a tag":   {"rooms/a.go": `package rooms; var x = n + "}:room"`},
		},
	},
	{
		name: "every package says once what it promises",
		ask: func(h *house) (complaints []string) {
			comments := map[string]int{}
			for _, s := range h.code {
				comments[s.dir()] += 0
				if s.file.Doc != nil {
					comments[s.dir()]++
				}
			}
			for _, dir := range slices.Sorted(maps.Keys(comments)) {
				if n := comments[dir]; n != 1 {
					complaints = append(complaints, fmt.Sprintf("package %s has %d package comments", dir, n))
				}
			}
			return complaints
		},
		breaks: map[string]map[string]string{
			"none": {"rooms/a.go": "package rooms"},
			"two":  {"rooms/a.go": "// Package rooms is.\npackage rooms", "rooms/b.go": "// Package rooms is too.\npackage rooms"},
		},
	},
	{
		name: "money has no floating point",
		ask: func(h *house) (complaints []string) {
			for _, s := range h.code {
				if s.isTest() || !slices.Contains([]string{"wallet", "rooms", "assets"}, s.top()) {
					continue
				}
				ast.Inspect(s.file, func(n ast.Node) bool {
					if f, ok := n.(*ast.Field); ok && len(f.Names) == 1 && f.Names[0].Name == "Score" {
						return false // what a game counts is not money
					}
					if i, ok := n.(*ast.Ident); ok && slices.Contains([]string{"float64", "float32", "ParseFloat", "FormatFloat"}, i.Name) {
						complaints = append(complaints, h.at(i.Pos())+": "+i.Name)
					}
					return true
				})
			}
			return complaints
		},
		breaks: map[string]map[string]string{"a float": {"wallet/a.go": `package wallet; var price float64`}},
	},
	{
		name: "tests wait for something, never for time",
		ask: func(h *house) (complaints []string) {
			for _, s := range h.code {
				if !s.isTest() || strings.HasPrefix(s.path, "tests/bench/") { // a bench is no test: nobody waits for it in vain
					continue
				}
				if slices.Contains(s.imports(), "testing/synctest") { // a fake clock: sleeping takes no time
					continue
				}
				ast.Inspect(s.file, func(n ast.Node) bool {
					if call, ok := n.(*ast.SelectorExpr); ok && call.Sel.Name == "Sleep" {
						if x, ok := call.X.(*ast.Ident); ok && x.Name == "time" {
							complaints = append(complaints, h.at(call.Pos())+": a test sleeps")
						}
					}
					return true
				})
			}
			return complaints
		},
		breaks: map[string]map[string]string{"a sleep": {"rooms/a_test.go": `package rooms; import "time"; func f() { time.Sl` + `eep(1) }`}}, // in two, so that a plain search finds no sleep
	},
	{
		// melody's broadcasts walk every session under its lock, and one of them stops at the first closed session; what is written
		// past its pump panics in gorilla. So realtime sends only through a session's own Write, from its own index.
		name: "nobody broadcasts through melody or writes past its pump",
		ask: func(h *house) (complaints []string) {
			forbidden := []string{"WriteMessage", "WritePreparedMessage", "WriteJSON", "NextWriter", "CloseWithMsg", "Sessions"}
			for _, s := range h.code {
				if s.isTest() || s.top() != "realtime" {
					continue
				}
				ast.Inspect(s.file, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok {
						return true
					}
					if f, ok := call.Fun.(*ast.SelectorExpr); ok && (strings.HasPrefix(f.Sel.Name, "Broadcast") || slices.Contains(forbidden, f.Sel.Name)) {
						complaints = append(complaints, h.at(f.Pos())+": "+f.Sel.Name)
					}
					return true
				})
			}
			return complaints
		},
		breaks: map[string]map[string]string{
			"a broadcast":         {"realtime/a.go": `package realtime; func f() { m.BroadcastFilter(nil, nil) }`},
			"a write of its own":  {"realtime/a.go": `package realtime; func f() { s.WebsocketConnection().WriteMessage(1, nil) }`},
			"a close under locks": {"realtime/a.go": `package realtime; func f() { m.CloseWithMsg(nil) }`},
		},
	},
	{
		name: "nothing is left for later",
		ask: func(h *house) (complaints []string) {
			later := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
			for _, s := range h.code {
				for _, group := range s.file.Comments {
					if later.MatchString(group.Text()) {
						complaints = append(complaints, h.at(group.Pos())+": "+later.FindString(group.Text()))
					}
				}
			}
			for name, text := range h.lua {
				if later.MatchString(text) {
					complaints = append(complaints, name+": "+later.FindString(text))
				}
			}
			return complaints
		},
		breaks: map[string]map[string]string{
			"in Go":  {"rooms/a.go": "package rooms\n\n// TO" + "DO: the rest"},
			"in Lua": {"scripts/a.lua": "-- FIX" + "ME"},
		},
	},
	{
		name: "a folder holds something and has a name that says what",
		ask: func(h *house) (complaints []string) {
			vague := []string{"util", "utils", "manager", "helper", "helpers", "common", "misc"}
			for dir, files := range h.folders {
				if files == 0 {
					complaints = append(complaints, dir+" is empty")
				}
				if slices.Contains(vague, path.Base(dir)) {
					complaints = append(complaints, dir+" does not say what it holds")
				}
			}
			return complaints
		},
		breaks: map[string]map[string]string{"a vague name": {"rooms/util/a.go": "package util"}},
	},
}
