package archtest

import (
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	fence         = regexp.MustCompile("(?ms)^```.*?^```$")
	codeSpan      = regexp.MustCompile("`([^`\n]+)`")
	markdownLink  = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)
	namedInFile   = regexp.MustCompile(`^([\w./-]+\.(?:go|lua)): (?:\(\*?(\w+)\)\.)?(\w+)(?:\.(\w+))?$`)
	namedInGo     = regexp.MustCompile(`^([a-z]+)\.(?:\(\*?(\w+)\)\.)?([A-Z]\w*)(?:\.(\w+))?$`)
	testName      = regexp.MustCompile(`^(?:Test|Benchmark|Fuzz)[A-Z]\w*$`)
	pathInProject = regexp.MustCompile(`^[\w.][\w.-]*(/[\w.-]+)*/?$`)
	luaFunction   = regexp.MustCompile(`(?m)^(?:local )?function (\w+)|^local (\w+) = function`)
)

// symbols returns what a Go file declares at its top level: "Name", for methods also "Type.Name",
// for fields "Type.Name" only.
func symbols(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, d := range file.Decls {
		switch x := d.(type) {
		case *ast.FuncDecl:
			names[strings.TrimPrefix(receiver(x)+"."+x.Name.Name, ".")] = true
			names[x.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range x.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names[s.Name.Name] = true
					visitFields(s.Type, func(f *ast.Ident) { names[s.Name.Name+"."+f.Name] = true })
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names[name.Name] = true
					}
				}
			}
		}
	}
	return names
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	if name, ok := t.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// references looks up what documents name.
type references struct {
	inFile    map[string]map[string]bool // by path
	inPackage map[string]map[string]bool // by name of the package
	tests     map[string]bool
	project   *project
}

func newReferences(p *project) references {
	r := references{map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]bool{}, p}
	for _, s := range p.code {
		names := symbols(s.file)
		r.inFile[s.path] = names
		if strings.HasSuffix(s.path, "_test.go") {
			maps.Copy(r.tests, names)
		}
		if pkg := s.file.Name.Name; !s.isTest() && pkg != "main" {
			if r.inPackage[pkg] == nil {
				r.inPackage[pkg] = map[string]bool{}
			}
			maps.Copy(r.inPackage[pkg], names)
		}
	}
	for name, text := range p.lua {
		r.inFile[name] = map[string]bool{}
		for _, m := range luaFunction.FindAllStringSubmatch(text, -1) {
			r.inFile[name][m[1]+m[2]] = true
		}
	}
	return r
}

// missing returns what is wrong with a code span of a document, "" when nothing is.
func (r references) missing(span string) string {
	if m := namedInFile.FindStringSubmatch(span); m != nil {
		switch names, ok := r.inFile[m[1]]; {
		case !ok:
			return "there is no file " + m[1]
		case !names[qualified(m[2], m[3], m[4])]:
			return m[1] + " declares no " + qualified(m[2], m[3], m[4])
		}
		return ""
	}
	if m := namedInGo.FindStringSubmatch(span); m != nil {
		names, ok := r.inPackage[m[1]]
		if ok && !names[qualified(m[2], m[3], m[4])] {
			return "package " + m[1] + " declares no " + qualified(m[2], m[3], m[4])
		}
		return ""
	}
	if testName.MatchString(span) && !r.tests[span] {
		return "there is no such test"
	}
	if !pathInProject.MatchString(span) || strings.HasPrefix(span, "bin/") {
		return ""
	}
	first, _, below := strings.Cut(span, "/")
	_, isTop := r.project.folders[first]
	isFile := slices.Contains([]string{".go", ".lua", ".md", ".yaml", ".ts", ".conf", ".cfg"}, path.Ext(span))
	if below && (isTop || isFile || strings.HasSuffix(span, "/")) && !r.exists(span) {
		return "there is no " + span
	}
	return ""
}

func (r references) exists(name string) bool {
	_, isFolder := r.project.folders[strings.TrimSuffix(name, "/")]
	return isFolder || r.project.files[name]
}

// qualified returns "Type.Name" for the parts of "(*Type).Name" and "Type.Name".
func qualified(receiver, name, member string) string {
	return strings.Trim(receiver+"."+name+"."+member, ".")
}

var documentRules = []rule{
	{
		name: "what documents name is there",
		check: func(p *project) (violations []string) {
			r := newReferences(p)
			for _, name := range slices.Sorted(maps.Keys(p.docs)) {
				text := fence.ReplaceAllString(p.docs[name], "")
				for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
					beside := path.Join(path.Dir(name), m[1]) // as a README names the files of its own package
					if missing := r.missing(m[1]); missing != "" && !r.exists(beside) {
						violations = append(violations, name+": `"+m[1]+"`: "+missing)
					}
				}
				for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
					target := path.Join(path.Dir(name), m[1])
					if strings.HasPrefix(m[1], "/") && strings.HasPrefix(name, "web/") {
						continue // an address on a node; web/test/docs.test.ts follows it
					}
					if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") && !r.exists(target) {
						violations = append(violations, name+": links to "+m[1]+", which is not there")
					}
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"a file":            {"README.md": "see `rooms/gone.go`", "rooms/doc.go": "package rooms"},
			"a folder":          {"README.md": "see `answers/`"},
			"a function":        {"docs/a.md": "`rooms/a.go: Join`", "rooms/a.go": "package rooms"},
			"a method":          {"docs/a.md": "`rooms/a.go: (*Service).Join`", "rooms/a.go": "package rooms; func Join() {}"},
			"a Lua function":    {"docs/a.md": "`scripts/a.lua: emit`", "scripts/a.lua": "local function emits() end"},
			"a name by package": {"docs/a.md": "`rooms.Join`", "rooms/a.go": "package rooms; func Leave() {}"},
			"a test":            {"docs/a.md": "`TestJoin`", "rooms/a_test.go": "package rooms; func TestLeave() {}"},
			"a link":            {"docs/a.md": "[it](gone.md)"},
			"an address":        {"docs/a.md": "[it](/docs/errors)"},
		},
	},
}
