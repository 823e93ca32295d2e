package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/tests/testkit"
	"golang.org/x/tools/go/packages"
)

// TestEveryPackageIsRightOnOtherSystems checks the types of all packages and of their tests, as go
// vet does first. It reads the libraries without the bodies of their functions: go vet would
// compile them for each system, which takes minutes on a machine that has never done it.
func TestEveryPackageIsRightOnOtherSystems(t *testing.T) {
	for _, system := range []string{"windows", "darwin"} {
		t.Run(system, func(t *testing.T) {
			folder := root(t)
			list := testkit.Must(packages.Load(&packages.Config{
				Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
					packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesSizes,
				Dir: folder, Tests: true, Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
				ParseFile: func(files *token.FileSet, name string, text []byte) (*ast.File, error) {
					file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
					if file != nil && !strings.HasPrefix(name, folder) {
						dropBodies(file)
					}
					return file, err
				},
			}, "./..."))(t)
			if len(list) < 50 {
				t.Fatalf("%d packages were read", len(list))
			}
			for _, p := range list {
				if strings.HasSuffix(p.ID, ".test") {
					continue // the main function that go test makes: its bodies were dropped
				}
				for _, e := range p.Errors {
					t.Errorf("GOOS=%s: %s", system, e)
				}
			}
		})
	}
}

// dropBodies removes what the types of a package do not depend on.
func dropBodies(file *ast.File) {
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok {
			function.Body = nil
		}
	}
}
