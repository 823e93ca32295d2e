package archtest

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

//go:generate go test . -run TestDrawingOfImportsIsFresh -update

// importRow is one row of the import table.
type importRow struct {
	pkg       string   // the folder, without internal/; it stands for the folders below it as well
	mayImport []string // other packages of the project
	reason    string   // why these and no others
}

// importTable lists which packages of the project each package may import, from the bottom up. Test
// files, cmd and tests may import everything.
var importTable = []importRow{
	{"principal", nil, "every layer names the caller, so the caller knows none of them"},
	{"apierror", nil, "every layer returns these errors, so they know no layer"},
	{"keys", nil, "the schema of the store is read by itself; a key depends on nothing but its arguments"},
	{"scripts", nil, "a script and its Go name; who runs it decides about keys and arguments"},
	{"config", nil, "settings are values; cmd hands them on, so no package reads a setting by itself"},
	{"secret", nil, "random texts and digests have no state"},
	{"wire", nil, "one JSON library and one time format, the same for requests, events and stored documents"},
	{"cache", nil, "a bounded map knows neither its keys nor its values"},
	{"logs", []string{"apierror"}, "a line is about an error or a time, whatever wrote it"},
	{"sdk", nil, "built files"},
	{"web", []string{"sdk"}, "built files with their headers; what a page shows comes from the API, as for every client"},

	{"referee", []string{"wire"}, "a game's own server knows the API and nothing behind it"},

	{"events", []string{"wire"}, "what a client may receive is the same on every transport; it is JSON"},

	{"storecost", nil, "counts what the store does for a request; handlers charge for it, and know no store"},
	{"storeclock", nil, "compares clocks that others read, so that tests can move them"},
	{
		"redisdb",
		[]string{"apierror", "keys", "scripts", "storeclock", "storecost"},
		"opens the store and runs scripts; it knows no domain",
	},
	{"text", []string{"apierror"}, "one check for every line of text that a person types"},
	{
		"leader",
		[]string{"apierror", "keys", "redisdb", "scripts"},
		"elects one node for the work of all games; the work is a domain's",
	},
	{"idempotency", foundation, "every domain leaves receipts, so receipts know no domain"},
	{
		"sessions",
		[]string{"keys", "redisdb", "scripts"},
		"what has ended is known to every node, whatever a session is for",
	},

	{
		"nodes",
		[]string{"principal", "apierror", "keys", "wire", "redisdb"},
		"what a node says of itself comes from cmd as numbers, so that it knows no domain",
	},
	{
		"upgrade",
		[]string{"principal", "nodes", "redisdb"},
		"compares what nodes report with the layout of the store, and knows nothing of what is stored",
	},
	{
		"presence",
		[]string{"keys", "events", "scripts", "wire", "redisdb", "idempotency"},
		"stores who follows which room by the keys of rooms; it knows no other domain and no socket",
	},
	{
		"trail",
		[]string{"principal", "apierror", "keys", "scripts", "wire", "redisdb", "idempotency"},
		"a record names what was changed by text, so the trail knows no domain",
	},
	{
		"history",
		[]string{"apierror", "keys", "redisdb", "scripts", "secret", "wire"},
		"compares ledgers by the numbers of their entries, and knows nothing else of money",
	},
	{
		"ledger",
		[]string{"keys", "events"},
		"an entry means the same in the store, in the archive and in a copy; it knows none of them",
	},
	{"archive", []string{"ledger"}, "keeps what left the store in files or S3, and knows nothing of Redis"},
	{"backup", []string{"wire", "redisdb"}, "copies whatever is in a store, so it knows no key"},
	{
		"migrate",
		[]string{"apierror", "keys", "events", "scripts", "wire", "redisdb", "ledger"},
		"reads what an older release has written, whose rules no domain knows any more",
	},
	{
		"stops",
		[]string{"apierror", "keys", "redisdb"},
		"which games are stopped is known without their money; who stops one says why",
	},
	{
		"readiness",
		[]string{"apierror", "logs", "redisdb", "storeclock"},
		"watches the store for the whole node and knows no domain",
	},

	{"users", withIdempotency, "players exist without money and without rooms"},
	{"games", withIdempotency, "a game is configured without its players; checks of others come through an interface"},
	{
		"wallet",
		append([]string{"leader", "ledger", "archive", "history", "stops"}, withIdempotency...),
		"money knows who owns it by id only, so that no rule of a game can change a balance",
	},

	{
		"usage",
		[]string{"apierror", "cache", "games", "keys", "redisdb", "scripts"},
		"knows whose a key is by its name, and of a game how much it may have",
	},
	{"assets", domains, "a purchase moves money"},
	{"prizes", domains, "moves money to winners and knows none of those who promise prizes"},
	{
		"leaderboards",
		append([]string{"leader", "prizes"}, domains...),
		"a board orders players of its game; it knows no room, and rooms know it as a name only",
	},
	{
		"rooms",
		append([]string{"leader"}, domains...),
		"a room takes stakes, shows players and follows the settings of its game",
	},
	{
		"tournaments",
		append([]string{"leader", "rooms", "leaderboards", "prizes"}, domains...),
		"a tournament has matches in rooms, scores on a board and a pot of prizes; none of them knows it",
	},
	{
		"auth", append(slices.Clone(domains), "sessions"),
		"signing in makes players, gives the grant of their game and checks its keys",
	},
	{"progress", domains, "a save belongs to a player and keeps the rules of its game"},
	{
		"accounts",
		[]string{"principal", "apierror", "users", "wallet", "auth", "progress", "sessions", "leaderboards"},
		"a player who goes leaves every domain, and no domain knows all others",
	},

	{
		"realtime",
		[]string{"principal", "apierror", "keys", "events", "secret", "wire", "cache", "redisdb", "text"},
		"carries topics to sockets and knows no domain, so that a new domain changes nothing here",
	},
	{
		"handlers",
		[]string{
			"principal", "apierror", "events", "secret", "wire", "cache", "text", "storecost", "idempotency",
			"users", "games", "wallet", "assets", "rooms", "leaderboards", "tournaments", "auth", "progress", "accounts",
			"realtime",
			"readiness", "nodes",
			"stops",
			"trail", "web",
		},
		"decodes, makes one call of a domain and encodes; it reaches the store through domains only",
	},
}

var (
	// foundation is what every domain may import.
	foundation = []string{
		"principal", "apierror", "keys", "events", "scripts", "secret", "wire", "cache", "redisdb", "text",
	}
	withIdempotency = append(slices.Clone(foundation), "idempotency")
	// domains may import the three domains below them and never each other.
	domains = append([]string{"users", "games", "wallet"}, withIdempotency...)
)

// standardLibraryOnly lists the packages that import no library.
var standardLibraryOnly = []string{
	"principal", "apierror", "keys", "events", "scripts", "config", "secret", "sdk", "web",
}

// libraryRow is the place of one library, or of one package of the project ("./keys").
type libraryRow struct {
	library string
	places  []string // patterns of path.Match; one that ends in "/" is a folder with all below it; none: tests only
	reason  string
}

var storeFiles = []string{"*/store.go", "*/store_*.go", "redisdb/", "leader/", "realtime/pubsub*.go"}

var socketFiles = []string{"realtime/", "handlers/socket*.go"}

var libraryTable = []libraryRow{
	{
		"./keys", append([]string{"ledger/"}, storeFiles...),
		"a key is read and written in one file of a package; accounts of the ledger have their names there",
	},
	{"./scripts", append([]string{"idempotency/receipt.go"}, storeFiles...), "as keys; a receipt compares a status"},
	{"./redisdb/redistest", nil, "starts servers, for tests only"},
	{"./wire/wiretest", nil, "decodes exact numbers, for tests only"},
	{"github.com/redis/go-redis", storeFiles, "what is known of Redis stands in one file of a package"},
	{"github.com/go-redsync", []string{"redisdb/"}, "locks elect leaders and nothing else"},
	{"github.com/alicebob", []string{"redisdb/"}, "the embedded store is one way to open a store"},
	{"github.com/gin-gonic", []string{"handlers/"}, "domains have no transport"},
	{"github.com/go-playground", []string{"handlers/"}, "comes with gin"},
	{"github.com/olahol/melody", socketFiles, "carries sessions and nothing more, so it can be replaced"},
	{"github.com/gorilla/websocket", append([]string{"cmd/parlor/tail.go"}, socketFiles...), "tail is a client"},
	{"github.com/golang-jwt", []string{"auth/"}, "tokens are verified in one place"},
	{"github.com/MicahParks", []string{"auth/"}, "keys of outside issuers are parsed in one place"},
	{"github.com/spf13", []string{"cmd/"}, "packages take values, not flags"},
	{"go.yaml.in", []string{"cmd/"}, "packages take values, not files"},
	{"github.com/klauspost/compress", []string{"archive/"}, "the archive is compressed"},
	{"github.com/minio", []string{"archive/"}, "the archive may be in S3"},
	{"github.com/schollz", []string{"cmd/"}, "progress is shown on a terminal"},
	{"github.com/johannesboyne", nil, "serves S3 in tests"},
	{"github.com/adhocore/gronx", []string{"leaderboards/"}, "seasons follow a cron expression"},
	{"github.com/hashicorp/golang-lru", []string{"cache/"}, "every cache is bounded and counted"},
	{"golang.org/x/text", []string{"text/"}, "one package knows which names look alike"},
	{"github.com/getkin", nil, "checks the contract in tests"},
	{"pgregory.net/rapid", nil, "makes up histories in tests"},
	{"github.com/anishathalye", nil, "checks histories in tests"},
	{"testing", []string{"redisdb/redistest/"}, "a binary must not carry the test framework"},
}

func matchesAny(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if strings.HasSuffix(p, "/") {
			return strings.HasPrefix(name, p)
		}
		ok, _ := path.Match(p, name)
		return ok
	})
}

func rowOf(pkg string) (importRow, bool) {
	i := slices.IndexFunc(importTable, func(r importRow) bool { return r.pkg == pkg })
	if i < 0 {
		return importRow{}, false
	}
	return importTable[i], true
}

var importRules = []rule{
	{
		name: "imports follow the table",
		check: func(p *project) (violations []string) {
			for _, s := range p.code {
				if s.isTest() || s.top() == "cmd" {
					continue
				}
				row, known := rowOf(s.top())
				if !known {
					violations = append(violations, s.path+": the package "+s.top()+" has no row in importTable")
				}
				for _, i := range s.imports() {
					own, ok := strings.CutPrefix(i, "./")
					to, _, _ := strings.Cut(own, "/")
					if ok && to != s.top() && !slices.Contains(row.mayImport, to) {
						violations = append(violations, fmt.Sprintf("%s: imports %s, but: %s", s.path, own, row.reason))
					}
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"two domains of the lowest row": {"wallet/a.go": `package wallet; import _ "` + module + `/users"`},
			"realtime imports a domain":     {"realtime/a.go": `package realtime; import _ "` + module + `/rooms"`},
			"below internal as beside it":   {"internal/users/a.go": `package users; import _ "` + module + `/internal/wallet"`},
			"handlers import the store":     {"handlers/a.go": `package handlers; import _ "` + module + `/redisdb"`},
			"a leaf imports anything":       {"internal/wire/a.go": `package wire; import _ "` + module + `/internal/apierror"`},
			"a package without a row":       {"surprise/a.go": `package surprise`},
		},
	},
	{
		name: "a library is imported in its place only",
		check: func(p *project) (violations []string) {
			for _, s := range p.code {
				if s.isTest() {
					continue
				}
				for _, i := range s.imports() {
					for _, row := range libraryTable {
						isIt := i == row.library || strings.HasPrefix(i, row.library+"/")
						if isIt && !matchesAny(s.place(), row.places) {
							violations = append(violations, fmt.Sprintf("%s: imports %s, whose place is %v: %s",
								s.path, i, row.places, row.reason))
						}
					}
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"go-redis outside a store":        {"rooms/service.go": `package rooms; import _ "github.com/redis/go-redis/v9"`},
			"keys outside a store":            {"rooms/service.go": `package rooms; import _ "` + module + `/keys"`},
			"gin outside handlers":            {"rooms/store.go": `package rooms; import _ "github.com/gin-gonic/gin"`},
			"melody in a handler of requests": {"handlers/rooms.go": `package handlers; import _ "github.com/olahol/melody"`},
			"a cache of its own":              {"auth/a.go": `package auth; import _ "github.com/hashicorp/golang-lru/v2"`},
		},
	},
	{
		// encoding/json accepts duplicate members and names in other case. Two decoders of one text
		// must not differ, not even in tests.
		name: "encoding/json is imported nowhere",
		check: func(p *project) (violations []string) {
			for _, s := range p.code {
				for _, i := range s.imports() {
					if i == "encoding/json" || strings.HasPrefix(i, "encoding/json/") {
						violations = append(violations, s.path+": imports "+i+": use package wire")
					}
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"in a package": {"rooms/a.go": `package rooms; import _ "encoding/json"`},
			"in a test":    {"rooms/a_test.go": `package rooms; import _ "encoding/json/v2"`},
		},
	},
	{
		name: "the lowest packages import the standard library only",
		check: func(p *project) (violations []string) {
			for _, s := range p.code {
				if s.isTest() || !slices.Contains(standardLibraryOnly, s.top()) {
					continue
				}
				for _, i := range s.imports() {
					if first, _, _ := strings.Cut(i, "/"); first != "." && strings.Contains(first, ".") {
						violations = append(violations, s.path+": imports "+i)
					}
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"a library": {"apierror/a.go": `package apierror; import _ "github.com/google/uuid"`},
		},
	},
}

func TestEveryRowHasAReasonAndAPackage(t *testing.T) {
	p := readProject(t)
	packages := map[string]bool{}
	for _, s := range p.code {
		packages[s.top()] = true
	}
	for i, row := range importTable {
		if row.reason == "" {
			t.Errorf("importTable: %s has no reason", row.pkg)
		}
		if !packages[row.pkg] {
			t.Errorf("importTable: there is no package %s", row.pkg)
		}
		below := importTable[:i]
		for _, to := range row.mayImport {
			if !slices.ContainsFunc(below, func(r importRow) bool { return r.pkg == to }) {
				t.Errorf("importTable: %s may import %s, which is not below it", row.pkg, to)
			}
		}
	}
	for _, row := range libraryTable {
		if row.reason == "" {
			t.Errorf("libraryTable: %s has no reason", row.library)
		}
	}
}

const (
	drawingFile  = "docs/architecture.md"
	drawingStart = "<!-- imports: generated from tests/archtest/imports_test.go by `make generate`; do not edit -->\n"
	drawingEnd   = "<!-- end of imports -->\n"
)

// importGroups are names for lists of packages that many rows have, the longest first.
var importGroups = []struct {
	name string
	pkgs []string
}{
	{"all domains", []string{"users", "games", "wallet", "assets", "rooms", "auth", "progress"}},
	{"users, games, wallet", []string{"users", "games", "wallet"}},
	{"idempotency, the foundation", withIdempotency},
	{"the foundation", foundation},
}

// drawImports returns the import table as Markdown.
func drawImports() string {
	var b strings.Builder
	b.WriteString("```text\n" + drawLayers() + "```\n\n")
	b.WriteString("*The foundation* is " + strings.Join(foundation, ", ") + ".\n\n")
	b.WriteString("| package | may import | because |\n|---|---|---|\n")
	for _, row := range slices.Backward(importTable) {
		left := slices.Clone(row.mayImport)
		var shown []string
		for _, group := range importGroups {
			if contains(left, group.pkgs) {
				shown = append(shown, group.name)
				left = slices.DeleteFunc(left, func(s string) bool { return slices.Contains(group.pkgs, s) })
			}
		}
		list := cmp.Or(strings.Join(append(shown, left...), ", "), "–")
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row.pkg, list, row.reason)
	}
	return b.String()
}

// drawLayers returns one line for each layer, from the top down. A package is one layer above the
// highest that it may import.
func drawLayers() string {
	layerOf := map[string]int{}
	layers := [][]string{}
	for _, row := range importTable {
		layer := 0
		for _, to := range row.mayImport {
			layer = max(layer, layerOf[to]+1)
		}
		layerOf[row.pkg] = layer
		if layer == len(layers) {
			layers = append(layers, nil)
		}
		layers[layer] = append(layers[layer], row.pkg)
	}
	layers = append(layers, []string{"cmd/parlor"})
	var b strings.Builder
	for i, layer := range slices.Backward(layers) {
		b.WriteString(strings.Join(layer, "  ") + "\n")
		if i > 0 {
			b.WriteString("   │\n")
		}
	}
	return b.String()
}

// contains reports whether list has every element of all.
func contains(list, all []string) bool {
	have := map[string]bool{}
	for _, s := range list {
		have[s] = true
	}
	for _, s := range all {
		if !have[s] {
			return false
		}
	}
	return true
}
