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

// visitFields visits the names of a struct's fields and of an interface's methods.
func visitFields(t ast.Expr, visit func(*ast.Ident)) {
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
				visit(name)
			}
		}
		return true
	})
}

var languageRules = []rule{
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
