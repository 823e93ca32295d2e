package archtest

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

//go:generate go test . -run TestDrawingOfImportsIsFresh|TestTableOfPackagesIsFresh -update

// folderRow is one folder of the house with the arrows that leave it.
type folderRow struct {
	folder    string
	mayImport []string // folders below it, or single packages of them
	reason    string   // why these and no others
}

// folderTable lists what the folders may import of each other, from the bottom up. Test files, cmd
// and tests may import everything. A permission that nothing uses is a violation.
var folderTable = []folderRow{
	{"scripts", nil, "a script and its Go name; who runs it decides about keys and arguments"},
	{"sdk", nil, "built files, and in sdk/go the library for games' servers, which knows the wire only"},
	{"web", []string{"sdk"}, "built files with their headers; what a page shows comes from the API, as for every client"},
	{"internal/base", nil, "errors, callers, texts and JSON are the same in every layer, so they know none"},
	{
		"internal/store",
		[]string{"scripts", "internal/base"},
		"names keys and events, runs scripts, elects leaders; it knows no domain",
	},
	{
		"internal/players",
		[]string{"scripts", "internal/store", "internal/base"},
		"players and games exist without money and without rooms",
	},
	{
		"internal/money",
		[]string{"scripts", "internal/store", "internal/base"},
		"money knows its owner by id only, so that no rule of a game can change a balance",
	},
	{
		"internal/ops",
		[]string{"scripts", "internal/money/ledger", "internal/store", "internal/base"},
		"knows nodes, settings and the store of any release, and of money the form of a ledger entry",
	},
	{
		"rooms",
		[]string{"scripts", "internal/players", "internal/money", "internal/store", "internal/base"},
		"a room takes stakes, shows players and follows the settings of its game",
	},
	{
		"competition",
		[]string{"scripts", "rooms", "internal/players", "internal/money", "internal/store", "internal/base"},
		"stands on rooms, which know it as a name only",
	},
	{
		"realtime",
		[]string{"internal/store", "internal/base"},
		"carries topics to sockets and knows no domain, so that a new domain changes nothing here",
	},
	{
		"handlers",
		[]string{
			"rooms", "competition", "realtime", "web", "internal/players", "internal/money", "internal/ops/activity",
			"internal/ops/nodes", "internal/ops/readiness", "internal/ops/trail", "internal/ops/webhooks",
			"internal/store/events",
			"internal/store/idempotency", "internal/base",
		},
		"decodes, makes one call of a domain and encodes; it reaches the store through domains only",
	},
}

// packageRow is one package with the packages of its own folder that it may import.
type packageRow struct {
	pkg       string
	mayImport []string
	reason    string
}

// packageTable lists the arrows inside of a folder. A package without a row has none.
var packageTable = []packageRow{
	{"internal/base/logs", []string{"internal/base/apierror"}, "a line is about an error or a time, whatever wrote it"},
	{"internal/base/principal", []string{"internal/base/apierror"}, "one error for a caller who may not"},
	{"internal/base/text", []string{"internal/base/apierror"}, "one check for every line of text that a person types"},
	{
		"internal/base/validate",
		[]string{"internal/base/apierror", "internal/base/wire"},
		"one check for each kind of member that several domains have",
	},
	{
		"internal/store/redisdb",
		[]string{"internal/store/keys", "internal/store/storeclock"},
		"opens the store, runs scripts, and compares the store's clock with its own",
	},
	{
		"internal/store/leader",
		[]string{"internal/store/keys", "internal/store/redisdb"},
		"elects one node for the work of all games; the work is a domain's",
	},
	{
		"internal/store/feed",
		[]string{"internal/store/events", "internal/store/keys", "internal/store/redisdb"},
		"reads the events of all rooms of a game, and knows no room",
	},
	{
		"internal/store/idempotency",
		[]string{"internal/store/keys", "internal/store/redisdb"},
		"every domain leaves receipts, so receipts know no domain",
	},
	{
		"internal/store/history",
		[]string{"internal/store/keys", "internal/store/redisdb"},
		"compares ledgers by the numbers of their entries, and knows nothing else of money",
	},
	{"internal/store/backup", []string{"internal/store/redisdb"}, "copies whatever is in a store, so it knows no key"},
	{
		"internal/players/auth",
		[]string{"internal/players/games", "internal/players/sessions", "internal/players/users"},
		"signing in makes players and checks the keys of their game",
	},
	{"internal/players/calls", []string{"internal/players/servers"}, "a call goes to the server that listens to its room"},
	{"internal/players/usage", []string{"internal/players/games"}, "knows of a game how much it may have"},
	{
		"internal/players/accounts",
		[]string{
			"internal/players/auth", "internal/players/progress", "internal/players/sessions", "internal/players/users",
		},
		"a player who goes leaves every domain; those of other folders come through interfaces",
	},
	{"internal/money/archive", []string{"internal/money/ledger"}, "keeps entries in files or S3, and knows no store"},
	{
		"internal/money/ledgerstore",
		[]string{"internal/money/archive", "internal/money/ledger"},
		"reads entries where they are, in the store or the archive; ledger cannot, since the archive knows no store",
	},
	{
		"internal/money/archiver",
		[]string{"internal/money/archive", "internal/money/ledger", "internal/money/ledgerstore"},
		"moves entries and lines as they are, so it knows no token and no balance",
	},
	{
		"internal/money/wallet",
		[]string{"internal/money/ledger", "internal/money/ledgerstore"},
		"every change of a balance is an entry",
	},
	{
		"internal/money/limits",
		[]string{"internal/money/wallet"},
		"a limit is an amount of a token, and the lines of a wallet have what was staked",
	},
	{
		"internal/money/audit",
		[]string{
			"internal/money/archive", "internal/money/archiver", "internal/money/ledger", "internal/money/ledgerstore",
			"internal/money/moneyhalt", "internal/money/wallet",
		},
		"compares all that there is of money, so it knows all of it, and nothing knows the audit",
	},
	{
		"internal/money/moneytest",
		[]string{"internal/money/audit", "internal/money/ledgerstore", "internal/money/wallet"},
		"tests of money begin with tokens and balances, and end with an audit",
	},
	{"internal/money/assets", []string{"internal/money/wallet"}, "a purchase moves money"},
	{
		"internal/money/prizes",
		[]string{"internal/money/wallet"},
		"moves money to winners and knows none of those who promise prizes",
	},
	{"internal/ops/webhooks", []string{"internal/ops/trail"}, "a webhook that is disabled leaves a record"},
	{"internal/ops/upgrade", []string{"internal/ops/nodes"}, "compares what nodes report with the layout of the store"},
	{
		"competition/tournaments",
		[]string{"competition/leaderboards"},
		"a tournament may have its scores on a leaderboard, which knows none",
	},
}

// serverLibrary is the folder of the library for games' servers in Go.
const serverLibrary = "sdk/go/"

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
	{
		"./scripts", append([]string{"idempotency/receipt.go", "scripts/generate/"}, storeFiles...),
		"as keys; a receipt compares a status, and the types of arguments are made of the headers",
	},
	{"./redisdb/redistest", nil, "starts servers, for tests only"},
	{"./dialguard/dialguardtest", nil, "resolves names for tests only"},
	{"./wire/wiretest", nil, "decodes exact numbers, for tests only"},
	{"./moneytest", nil, "makes tokens and balances, for tests only"},
	{"github.com/redis/go-redis", storeFiles, "what is known of Redis stands in one file of a package"},
	{"github.com/go-redsync", []string{"redisdb/"}, "locks elect leaders and nothing else"},
	{"github.com/alicebob", []string{"redisdb/"}, "the embedded store is one way to open a store"},
	{"github.com/gin-gonic", []string{"handlers/"}, "domains have no transport"},
	{"github.com/go-playground", []string{"handlers/"}, "comes with gin"},
	{"github.com/olahol/melody", socketFiles, "carries sessions and nothing more, so it can be replaced"},
	{
		"github.com/gorilla/websocket", append([]string{"cmd/parlor/tail.go", serverLibrary}, socketFiles...),
		"tail and the servers of games are clients",
	},
	{"github.com/golang-jwt", []string{"auth/"}, "tokens are verified in one place"},
	{"github.com/MicahParks", []string{"auth/"}, "keys of outside issuers are parsed in one place"},
	{"github.com/standard-webhooks", []string{"webhooks/"}, "messages are signed in one place"},
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
	{"testing", []string{"redisdb/redistest/", "moneytest/"}, "a binary must not carry the test framework"},
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

// isUnder reports whether a package is one, or in a folder.
func isUnder(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

// packageOf returns the package of the house that a folder of sources belongs to: redistest is a
// part of redisdb.
func packageOf(dir string) string {
	folder := folderOf(dir)
	rest, ok := strings.CutPrefix(dir, folder+"/")
	if !ok || !slices.Contains(groups, folder+"/") {
		return folder
	}
	first, _, _ := strings.Cut(rest, "/")
	return folder + "/" + first
}

// arrow is an import of one package by another.
type arrow struct{ from, to string }

// arrows returns the imports between the packages of the project, with one file each. Test files,
// cmd and tests are left out.
func (p *project) arrows() map[arrow]string {
	found := map[arrow]string{}
	for _, s := range p.code {
		if s.isTest() || s.top() == "cmd" {
			continue
		}
		for _, own := range s.ownImports() {
			if a := (arrow{packageOf(s.dir()), packageOf(own)}); a.from != a.to {
				found[a] = s.path
			}
		}
	}
	return found
}

// permission returns the row that speaks for an arrow, and which of its permissions allows it.
func permission(a arrow) (reason, permission string) {
	from := folderOf(a.from)
	if from == folderOf(a.to) {
		i := slices.IndexFunc(packageTable, func(r packageRow) bool { return r.pkg == a.from })
		if i < 0 {
			return "it imports no package of its own folder", ""
		}
		if slices.Contains(packageTable[i].mayImport, a.to) {
			permission = a.to
		}
		return packageTable[i].reason, permission
	}
	i := slices.IndexFunc(folderTable, func(r folderRow) bool { return r.folder == from })
	if i < 0 {
		return "its folder has no row in folderTable", ""
	}
	for _, one := range folderTable[i].mayImport {
		if isUnder(a.to, one) {
			permission = one
		}
	}
	return folderTable[i].reason, permission
}

var importRules = []rule{
	{
		name: "imports follow the tables",
		check: func(p *project) (violations []string) {
			for _, s := range p.code {
				isListed := slices.ContainsFunc(folderTable, func(r folderRow) bool { return r.folder == folderOf(s.path) })
				if !s.isTest() && s.top() != "cmd" && !isListed {
					violations = append(violations, s.path+": its folder has no row in folderTable")
				}
			}
			for a, file := range p.arrows() {
				if reason, permission := permission(a); permission == "" {
					violations = append(violations, fmt.Sprintf("%s: imports %s, but: %s", file, a.to, reason))
				}
			}
			return violations
		},
		samples: map[string]map[string]string{
			"two domains beside each other": {
				"internal/money/wallet/a.go": `package wallet; import _ "` + module + `/internal/players/users"`,
			},
			"an arrow inside of a folder": {
				"internal/players/users/a.go": `package users; import _ "` + module + `/internal/players/games"`,
			},
			"an arrow back up":          {"rooms/a.go": `package rooms; import _ "` + module + `/competition/tournaments"`},
			"realtime imports a domain": {"realtime/a.go": `package realtime; import _ "` + module + `/rooms"`},
			"handlers import the store": {
				"handlers/a.go": `package handlers; import _ "` + module + `/internal/store/redisdb"`,
			},
			"the lowest folder imports anything": {
				"internal/base/wire/a.go": `package wire; import _ "` + module + `/internal/store/keys"`,
			},
			"a folder without a row": {"surprise/a.go": `package surprise`},
			"a group without a row":  {"internal/wallet/a.go": `package wallet`},
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
		// The library for games' servers is for programs that have the standard library only.
		name: "encoding/json is imported nowhere",
		check: func(p *project) (violations []string) {
			for _, s := range p.code {
				if strings.HasPrefix(s.path, serverLibrary) {
					continue
				}
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
				if s.isTest() || !slices.Contains(standardLibraryOnly, s.top()) || strings.HasPrefix(s.path, serverLibrary) {
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

func TestEveryPermissionHasAReasonAndIsUsed(t *testing.T) {
	used := map[arrow]bool{} // of a row
	for a := range readProject(t).arrows() {
		from := a.from
		if folderOf(a.from) != folderOf(a.to) {
			from = folderOf(a.from)
		}
		_, one := permission(a)
		used[arrow{from, one}] = true
	}
	var below []string
	check := func(table, name, reason string, mayImport []string) {
		if reason == "" {
			t.Errorf("%s: %s has no reason", table, name)
		}
		for _, to := range mayImport {
			if !used[arrow{name, to}] {
				t.Errorf("%s: %s may import %s, and does not", table, name, to)
			}
			if !slices.ContainsFunc(below, func(folder string) bool { return isUnder(to, folder) }) {
				t.Errorf("%s: %s may import %s, which is not below it", table, name, to)
			}
		}
	}
	for _, row := range folderTable {
		check("folderTable", row.folder, row.reason, row.mayImport)
		below = append(below, row.folder)
	}
	isRow := map[string]bool{}
	for _, row := range packageTable {
		isRow[row.pkg] = true
	}
	below = nil
	for _, row := range packageTable {
		for _, to := range row.mayImport {
			if !isRow[to] {
				below = append(below, to) // it imports nothing of the folder
			}
		}
		check("packageTable", row.pkg, row.reason, row.mayImport)
		below = append(below, row.pkg)
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

// drawImports returns the imports as they are, as Markdown: the folders from the top down, what
// each imports of the others, and the packages in it.
func drawImports(p *project) string {
	byFolder, inside := map[string]map[string]bool{}, map[string][]string{}
	for a := range p.arrows() {
		from, to := folderOf(a.from), folderOf(a.to)
		if from == to {
			inside[a.from] = append(inside[a.from], path.Base(a.to))
			continue
		}
		if byFolder[from] == nil {
			byFolder[from] = map[string]bool{}
		}
		byFolder[from][to] = true
	}
	packages := map[string][]string{}
	for _, s := range p.code {
		pkg := packageOf(s.dir())
		if folder := folderOf(pkg); pkg != folder && !slices.Contains(packages[folder], pkg) {
			packages[folder] = append(packages[folder], pkg)
		}
	}
	var b strings.Builder
	b.WriteString("```text\n" + drawLayers(byFolder) + "```\n\n")
	b.WriteString("| folder | imports | because |\n|---|---|---|\n")
	for _, row := range slices.Backward(folderTable) {
		list := cmp.Or(strings.Join(slices.Sorted(maps.Keys(byFolder[row.folder])), ", "), "–")
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row.folder, list, row.reason)
	}
	b.WriteString("\n| folder | packages, with what they import of each other |\n|---|---|\n")
	for _, row := range slices.Backward(folderTable) {
		var list []string
		for _, pkg := range slices.Sorted(slices.Values(packages[row.folder])) {
			name := path.Base(pkg)
			if to := slices.Sorted(slices.Values(inside[pkg])); len(to) > 0 {
				name += " (" + strings.Join(to, ", ") + ")"
			}
			list = append(list, name)
		}
		if len(list) > 0 {
			fmt.Fprintf(&b, "| %s | %s |\n", row.folder, strings.Join(list, " · "))
		}
	}
	return b.String()
}

// drawLayers returns one line for each layer, from the top down. A folder is one layer above the
// highest that it imports.
func drawLayers(imports map[string]map[string]bool) string {
	layerOf := map[string]int{}
	layers := [][]string{}
	for _, row := range folderTable {
		layer := 0
		for to := range imports[row.folder] {
			layer = max(layer, layerOf[to]+1)
		}
		layerOf[row.folder] = layer
		if layer == len(layers) {
			layers = append(layers, nil)
		}
		layers[layer] = append(layers[layer], row.folder)
	}
	layers = append(layers, []string{"cmd"})
	var b strings.Builder
	for i, layer := range slices.Backward(layers) {
		b.WriteString(strings.Join(layer, "  ") + "\n")
		if i > 0 {
			b.WriteString("   │\n")
		}
	}
	return b.String()
}
