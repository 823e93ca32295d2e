package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// commentText is one comment of a Go or Lua file.
type commentText struct {
	path, position, text string
	isDoc                bool // stands at a declaration
}

func (c commentText) isArchtest() bool { return path.Dir(c.path) == "tests/archtest" }

// comments returns all comments of the project.
func (p *project) comments() (list []commentText) {
	for _, s := range p.code {
		docs := docComments(s.file)
		for _, group := range s.file.Comments {
			list = append(list, commentText{s.path, p.position(group.Pos()), group.Text(), docs[group]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.lua)) {
		n := 0
		for line := range strings.Lines(p.lua[name]) {
			n++
			if _, text, ok := strings.Cut(line, "--"); ok {
				isHeader := strings.HasPrefix(line, "--")
				list = append(list, commentText{name, fmt.Sprintf("%s:%d", name, n), text, isHeader})
			}
		}
	}
	return list
}

// docComments returns the comments that document a package, a declaration or a field.
func docComments(file *ast.File) map[*ast.CommentGroup]bool {
	docs := map[*ast.CommentGroup]bool{file.Doc: true}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.GenDecl:
			docs[x.Doc] = true
		case *ast.FuncDecl:
			docs[x.Doc] = true
		case *ast.TypeSpec:
			docs[x.Doc], docs[x.Comment] = true, true
		case *ast.ValueSpec:
			docs[x.Doc], docs[x.Comment] = true, true
		case *ast.Field:
			docs[x.Doc], docs[x.Comment] = true, true
		}
		return true
	})
	return docs
}

var (
	// privatePhrase matches phrases for which Go has others: returns, reports whether, is called when.
	privatePhrase = regexp.MustCompile(`(?i)\banswers\b|\btells\s+whether\b|\b(is|are)\s+told\b`)
	// elsewhere matches references to lists and documents that are not in the repository.
	elsewhere = regexp.MustCompile(`\bcontract(\.md)?,? \d|(^|[^{\w])[mr]\d+\b`)
)

// retired lists by package the names that common terms have replaced. They may not be declared
// again at the top level, as a method or as a field.
var retired = map[string][]string{
	"apierror":    {"Refusal", "Faults", "Because", "At", "vocabulary"},
	"idempotency": {"Answer", "Run", "FirstAnswer", "again", "ForCall"},
	"keys":        {"Home", "RoomHome"},
	"config":      {"RoomHome", "RoomHomes"},
	"redisdb":     {"Needs", "Unfit", "judge", "installed"},
	"users":       {"Newcomer", "Welcomed", "Who", "Caller", "Role"},
	"auth":        {"welcome", "outsider", "proof", "hint"},
	"games":       {"ParseKeySet", "KeySet", "OwnIssuer"},
	"wallet":      {"Literal", "direction", "mutation", "house", "whole", "rest"},
	"progress":    {"Kept", "breach", "pace", "bank", "seal", "Intact"},
	"rooms":       {"outcome", "named", "recall", "look", "numbers", "plan", "do"},
	"handlers": {
		"Edge", "call", "reply", "needs", "lacks", "normal", "visitor", "verb", "said", "hear", "turnDown", "enter",
	},
	"realtime": {
		"Peer", "peer", "line", "board", "patient", "repair", "Gate", "Doubt", "doubt", "Unasked", "heardOf", "Relay",
		"joint", "stretch", "parcel", "tidy", "cool", "cut", "everyone", "unwelcome", "beat", "hold", "ask",
		"hear", "enter", "rest", "impatience",
	},
	"archtest": {"house", "theHouse", "pretend", "complaint"},
}

// retiredEverywhere lists the names that no package may declare, not even as a local variable.
var retiredEverywhere = []string{
	"purse", "pocket", "deed", "whisper", "healer", "mercy", "desk", "doorbell", "farewell", "urge", "keepHouse",
}

// retiredInLua lists the names of functions that no script may declare.
var retiredInLua = []string{
	"lay", "found", "sit", "rise", "shift", "raise", "book", "tell", "alter", "put", "done", "seen", "keep", "rehost",
	"plus", "whole", "move",
}

var (
	luaFunctionName = regexp.MustCompile(`(?m)^\s*(?:local\s+)?function\s+(\w+)|^\s*local\s+(\w+)\s*=\s*function`)
	luaVariable     = regexp.MustCompile(`(?m)^\s*local\s+(\w+)`)
)

// declared calls visit with each name that a file declares. isLocal is false at the top level, for
// methods and for fields.
func declared(file *ast.File, visit func(name *ast.Ident, isLocal bool)) {
	for _, d := range file.Decls {
		switch x := d.(type) {
		case *ast.FuncDecl:
			visit(x.Name, false)
		case *ast.GenDecl:
			for _, spec := range x.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					visit(s.Name, false)
					visitFields(s.Type, visit)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						visit(name, false)
					}
				}
			}
		}
		visitLocals(d, visit)
	}
}

// visitFields visits the names of a struct's fields and of an interface's methods.
func visitFields(t ast.Expr, visit func(*ast.Ident, bool)) {
	ast.Inspect(t, func(n ast.Node) bool {
		var list *ast.FieldList
		switch x := n.(type) {
		case *ast.StructType:
			list = x.Fields
		case *ast.InterfaceType:
			list = x.Methods
		default:
			return true
		}
		for _, f := range list.List {
			for _, name := range f.Names {
				visit(name, false)
			}
		}
		return true
	})
}

// visitLocals visits the names of parameters, results and local variables.
func visitLocals(d ast.Decl, visit func(*ast.Ident, bool)) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Field:
			for _, name := range x.Names {
				visit(name, true)
			}
		case *ast.ValueSpec:
			for _, name := range x.Names {
				visit(name, true)
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{x.Key, x.Value} {
				if name, ok := e.(*ast.Ident); ok {
					visit(name, true)
				}
			}
		case *ast.AssignStmt:
			if x.Tok.String() == ":=" {
				for _, e := range x.Lhs {
					if name, ok := e.(*ast.Ident); ok {
						visit(name, true)
					}
				}
			}
		}
		return true
	})
}

var languageRules = []rule{
	{
		name: "a retired name is not declared again",
		check: func(p *project) (violations []string) {
			for _, s := range p.code {
				found := map[string]bool{} // a name at the top level is visited as a local one, too
				declared(s.file, func(name *ast.Ident, isLocal bool) {
					again := slices.Contains(retiredEverywhere, name.Name) ||
						!isLocal && slices.Contains(retired[path.Base(s.dir())], name.Name)
					if at := p.position(name.Pos()); again && !found[at] {
						found[at] = true
						violations = append(violations, at+": declares "+name.Name+", which is retired")
					}
				})
			}
			for _, name := range slices.Sorted(maps.Keys(p.lua)) {
				for _, m := range luaFunctionName.FindAllStringSubmatch(p.lua[name], -1) {
					if slices.Contains(retiredInLua, m[1]+m[2]) {
						violations = append(violations, name+": declares "+m[1]+m[2]+", which is retired")
					}
				}
				for _, m := range luaVariable.FindAllStringSubmatch(p.lua[name], -1) {
					if m[1] == "R" || slices.Contains(retiredEverywhere, m[1]) {
						violations = append(violations, name+": declares "+m[1]+", which is retired")
					}
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"a type":               {"realtime/a.go": `package realtime; type Peer struct{}`},
			"a method":             {"realtime/a.go": `package realtime; func (h *Hub) tidy() {}`},
			"a field":              {"internal/players/progress/a.go": `package progress; type Version struct{ Intact bool }`},
			"a method to be given": {"rooms/a.go": `package rooms; type store interface{ recall() }`},
			"a local variable":     {"rooms/a.go": `package rooms; func f() { purse := 1; _ = purse }`},
			"a parameter":          {"internal/money/assets/a.go": `package assets; func f(purse int) {}`},
			"a Lua function":       {"scripts/a.lua": "local function rehost(room)\nend"},
			"a Lua variable":       {"scripts/a.lua": "local R = {}"},
		},
	},
	{
		name: "a doc comment uses Go's phrases",
		check: func(p *project) (violations []string) {
			for _, c := range p.comments() {
				if phrase := privatePhrase.FindString(c.text); phrase != "" && c.isDoc && !c.isArchtest() {
					violations = append(violations, fmt.Sprintf("%s: %q: write returns, reports whether, is called when, must",
						c.position, phrase))
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"answers":       {"rooms/a.go": "package rooms\n\n// Get answers a room.\nfunc Get() {}"},
			"tells whether": {"rooms/a.go": "package rooms\n\n// Full tells\n// whether it is full.\nfunc Full() {}"},
			"is told":       {"rooms/a.go": "package rooms\n\ntype T struct {\n\tA int // is told at the end\n}"},
			"in Lua":        {"scripts/a.lua": "-- room_get: answers a room."},
		},
	},
	{
		name: "no comment refers to a number that stands elsewhere",
		check: func(p *project) (violations []string) {
			for _, c := range p.comments() {
				if number := elsewhere.FindString(c.text); number != "" && !c.isArchtest() {
					violations = append(violations, fmt.Sprintf("%s: refers to %q", c.position, strings.TrimSpace(number)))
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"a document":   {"rooms/a.go": "package rooms\n\n// See contract 8."},
			"a trap":       {"realtime/a_test.go": "package realtime\n\n// the numbers m1 to m19"},
			"another trap": {"realtime/a_test.go": "package realtime\n\n// r6: a closed channel"},
		},
	},
}
