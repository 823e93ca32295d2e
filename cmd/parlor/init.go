package main

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/sdk"
	"github.com/spf13/cobra"
)

// starter is what init writes about.
type starter struct {
	folder, template string
	server           string // what the game's server is written in; "": the players decide
	origins          string // of the page, comma-separated
	port, redisPort  int
}

func initCommand() *cobra.Command {
	var s starter
	c := &cobra.Command{
		Use: "init [folder]", Args: cobra.MaximumNArgs(1),
		Short: "Write a game that two windows play, and a node for it: settings with new secrets, and a compose file",
		Long: "init writes a game with the SDK to the folder game, and beside it what runs a node for that game:\n" +
			"parlor.env with new secrets, redis.conf, compose.yaml and a Dockerfile around this program. It overwrites\n" +
			"nothing: when one of the files exists, it writes none. Then it prints the commands that start both.\n" +
			"With --server the game has a server of its own in the folder server, which decides every move.",
		RunE: func(c *cobra.Command, args []string) error {
			s.folder = "."
			if len(args) == 1 && args[0] != "" {
				s.folder = args[0]
			}
			if err := s.check(); err != nil {
				return err
			}
			if err := s.write(); err != nil {
				return err
			}
			s.printSteps(c.OutOrStdout())
			return nil
		},
	}
	c.Flags().StringVar(&s.template, "template", "vanilla", "the game's template: vanilla, react or phaser")
	c.Flags().StringVar(&s.server, "server", "", "also write a server that decides the game, in: "+serverLanguages())
	c.Flags().StringVar(&s.origins, "origins", "http://localhost:5173,http://localhost:4173",
		"origins (comma-separated) of the game's page")
	c.Flags().IntVar(&s.port, "port", 8080, "port of the node")
	c.Flags().IntVar(&s.redisPort, "redis-port", 6379, "port of Redis, where it runs without Docker")
	return c
}

// check returns an error for what the node would refuse when it starts.
func (s *starter) check() error {
	origins := splitOrigins(s.origins)
	for _, origin := range origins {
		if err := games.CheckOrigin(origin); err != nil {
			return fmt.Errorf("--origins: %s %w", origin, err)
		}
	}
	s.origins = strings.Join(origins, ",") // without spaces, as a shell reads parlor.env
	for _, port := range []int{s.port, s.redisPort} {
		if port < 1 || port > math.MaxUint16 {
			return fmt.Errorf("--port and --redis-port are from 1 to %d, not %d", math.MaxUint16, port)
		}
	}
	if s.port == s.redisPort {
		return fmt.Errorf("the node and Redis cannot both have port %d: set --port or --redis-port", s.port)
	}
	if _, exists := serverCommands[s.server]; s.server != "" && !exists {
		return fmt.Errorf("there is no server in %s: --server is %s", s.server, serverLanguages())
	}
	if info, err := os.Stat(s.folder); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is a file: name a folder", s.folder)
	}
	return nil
}

const (
	gameFolder   = "game" // apart from the node's files: Vite shows what is in its folder
	serverFolder = "server"
	programFile  = "parlor"
	gameTemplate = "game" // has what every template has

	templateFolder       = "create/templates"
	serverTemplateFolder = "create/servers" // its folder game has what replaces files of a template
)

// serverCommands are the commands that start a game's server in its folder, by its language.
var serverCommands = map[string][]string{
	"node": {"npm install", "npm start"},
	"go":   {"go run ."},
}

// serverLanguages returns the values of --server for a reader.
func serverLanguages() string {
	return strings.Join(slices.Sorted(maps.Keys(serverCommands)), " or ")
}

// Values of nodeFiles that a starter with a game's server has.
const (
	serverEnv = `# For the game's server: the node, and the server key of its game. Keep it out of your repository.
URL=http://127.0.0.1:{port}
SERVER_KEY={game key}
`
	serverService = `  server:
    build: server
    restart: unless-stopped
    env_file: server.env
    environment: ["URL=http://node:8080"]
    depends_on: [node]
`
)

// nodeFiles are the files for a node. Braces stand for values of a starter.
var nodeFiles = map[string]string{
	"parlor.env": `# Settings of parlor serve, with secrets: keep this file out of your repository.
# "parlor config env" lists all settings. The operator's key opens /api/v1/admin, and the key of the
# first game is for a game server of your own.
PARLOR_ADMIN_KEY={admin}
PARLOR_SIGNING_KEY={signing}
PARLOR_FIRST_GAME={name}
PARLOR_FIRST_GAME_ORIGINS={origins}
PARLOR_FIRST_GAME_KEY={game key}
PARLOR_LISTEN=127.0.0.1:{port}
PARLOR_REDIS_URL=redis://:{redis}@127.0.0.1:{redis port}/0
`,
	"compose.env": `# What differs from parlor.env in a container.
PARLOR_LISTEN=0.0.0.0:8080
PARLOR_REDIS_URL=redis://:{redis}@redis:6379/0
REDIS_PASSWORD={redis}
`,
	"redis.conf": `# A Redis for this machine that writes to disk before it answers.
bind 127.0.0.1
port {redis port}
requirepass {redis}
dir data
appendonly yes
appendfsync always
maxmemory 1gb
maxmemory-policy noeviction
`,
	"compose.yaml": `# One node and one Redis that writes to disk before it answers. For TLS, several nodes and users of
# Redis with few rights, start from deploy/compose.yaml of the repository of Parlor.
name: {name}
services:
  node:
    build: .
    restart: unless-stopped
    env_file: [parlor.env, compose.env]
    ports: ["127.0.0.1:{port}:8080"]
    depends_on: [redis]
{server service}  redis:
    image: redis:7.2.16-bookworm
    restart: unless-stopped
    env_file: compose.env
    command:
      - sh
      - -c
      - exec redis-server --appendonly yes --appendfsync always --maxmemory 1gb --maxmemory-policy noeviction
        --requirepass "$$REDIS_PASSWORD"
    volumes: ["data:/data"]
volumes:
  data:
`,
	"Dockerfile": `# Around the program that wrote this file. Debian, because "go build" links it with the system's C
# library where there is a C compiler; with CGO_ENABLED=0 "FROM scratch" is enough.
FROM debian:13.1-slim
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --chmod=0755 parlor /parlor
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s CMD ["/parlor", "healthcheck"]
ENTRYPOINT ["/parlor"]
CMD ["serve"]
`,
	".dockerignore": "*\n!parlor\n",
	".gitignore":    "# Secrets, data, and the program for the image.\n/*.env\n/redis.conf\n/data/\n/parlor\n",
}

// modes are the modes of files that are not for everybody to read, or that are run.
var modes = map[string]fs.FileMode{
	"parlor.env": 0o600, "compose.env": 0o600, "redis.conf": 0o600, "server.env": 0o600, programFile: 0o755,
}

const secretBytes = 32

// files returns everything to write, by path below the folder.
func (s starter) files() (map[string][]byte, error) {
	folder, err := filepath.Abs(s.folder)
	if err != nil {
		return nil, err
	}
	name := packageName(filepath.Base(folder))
	values := []string{
		"{name}", name, "{origins}", strings.Join(splitOrigins(s.origins), ","), "{game key}", games.NewFirstServerKey(),
		"{port}", strconv.Itoa(s.port), "{redis port}", strconv.Itoa(s.redisPort),
	}
	for _, secret := range []string{"admin", "signing", "redis"} {
		b := make([]byte, secretBytes)
		_, _ = rand.Read(b) // never fails
		values = append(values, "{"+secret+"}", hex.EncodeToString(b))
	}
	files := map[string][]byte{}
	texts := maps.Clone(nodeFiles)
	service := ""
	if s.server != "" {
		service = serverService
		texts["server.env"] = serverEnv
	}
	values = append(values, "{server service}", service)
	for path, text := range texts {
		files[path] = []byte(strings.NewReplacer(values...).Replace(text))
	}
	if err := s.addTemplates(files, name); err != nil {
		return nil, err
	}
	if runtime.GOOS == "linux" {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		files[programFile], err = os.ReadFile(program)
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// packageName returns a text as npm names packages, as sdk/create/create.mjs does it.
func packageName(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return cmp.Or(strings.TrimLeft(b.String(), "._-"), "my-game")
}

// addTemplates adds the game of the template, as sdk/create/create.mjs writes it, and the game's
// server.
func (s starter) addTemplates(files map[string][]byte, name string) error {
	templates, err := fs.ReadDir(sdk.Templates, templateFolder)
	if err != nil {
		return err
	}
	isTemplate := func(e fs.DirEntry) bool { return e.Name() == s.template && s.template != gameTemplate }
	if !slices.ContainsFunc(templates, isTemplate) {
		return fmt.Errorf("there is no template %s: --template is vanilla, react or phaser", s.template)
	}
	values := strings.NewReplacer("my-game", name, "http://localhost:8080", fmt.Sprintf("http://localhost:%d", s.port))
	sources := [][2]string{ // in this order: a later one replaces files
		{templateFolder + "/" + gameTemplate, gameFolder}, {templateFolder + "/" + s.template, gameFolder},
	}
	if s.server != "" {
		sources = append(sources, [2]string{serverTemplateFolder + "/" + gameTemplate, gameFolder},
			[2]string{serverTemplateFolder + "/" + s.server, serverFolder})
	}
	for _, source := range sources {
		if err := addFolder(files, source[0], source[1], values); err != nil {
			return err
		}
	}
	for _, folder := range []string{gameFolder, serverFolder} {
		if err := addPackages(files, folder); err != nil {
			return err
		}
	}
	if s.server == "go" {
		return addGoModules(files, name)
	}
	return nil
}

// The module files of a server in Go. A template cannot have them: a folder with go.mod is a module
// of its own, which is not embedded. Braces stand for values.
const (
	goModule = `module {name}/server

go 1.26.0

require (
	github.com/gorilla/websocket v1.5.3
	github.com/parlor-games/parlor v1.0.0
)

// The library as the program parlor brought it. Without this line it is the published one.
replace github.com/parlor-games/parlor => ./parlor
`
	goLibraryModule = `module github.com/parlor-games/parlor

go 1.26.0

require github.com/gorilla/websocket v1.5.3
`
	goSum = `github.com/gorilla/websocket v1.5.3 h1:saDtZ6Pbx/0u+bgYQ3q96pZgCzfhKXGPqt7kZ72aNNg=
github.com/gorilla/websocket v1.5.3/go.mod h1:YR8l580nyteQvAITg2hZ9XVh4b55+EU/adAjf1fMHhE=
`
)

// addGoModules adds the library for servers in Go, and the module files that lead to it.
func addGoModules(files map[string][]byte, name string) error {
	const library = serverFolder + "/parlor"
	files[serverFolder+"/go.mod"] = []byte(strings.ReplaceAll(goModule, "{name}", name))
	files[serverFolder+"/go.sum"] = []byte(goSum)
	files[library+"/go.mod"] = []byte(goLibraryModule)
	sources, err := fs.Glob(sdk.GoLibrary, "go/*.go")
	if err != nil {
		return err
	}
	for _, path := range sources {
		if files[library+"/sdk/"+path], err = sdk.GoLibrary.ReadFile(path); err != nil {
			return err
		}
	}
	return nil
}

// addFolder adds the files of a folder of sdk.Templates below another folder, with values in place.
func addFolder(files map[string][]byte, from, to string, values *strings.Replacer) error {
	return fs.WalkDir(sdk.Templates, from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := sdk.Templates.ReadFile(path)
		if err != nil {
			return err
		}
		path = strings.TrimPrefix(path, from+"/")
		if rest, hidden := strings.CutPrefix(path, "_"); hidden {
			path = "." + rest
		}
		files[to+"/"+path] = []byte(values.Replace(string(text)))
		return nil
	})
}

// addPackages adds the packages of the SDK that the package.json of a folder names.
func addPackages(files map[string][]byte, folder string) error {
	packages, err := fs.Glob(sdk.Files, "dist/*.tgz")
	if err != nil {
		return err
	}
	manifest := string(files[folder+"/package.json"])
	for _, path := range packages {
		vendored := "vendor/" + strings.TrimPrefix(path, "dist/")
		if !strings.Contains(manifest, vendored) {
			continue
		}
		if files[folder+"/"+vendored], err = sdk.Files.ReadFile(path); err != nil {
			return err
		}
	}
	return nil
}

// write writes all files, or none where one of them exists.
func (s starter) write() error {
	files, err := s.files()
	if err != nil {
		return err
	}
	paths := slices.Sorted(maps.Keys(files))
	var existing []string
	for _, path := range paths {
		if _, err := os.Lstat(filepath.Join(s.folder, path)); err == nil {
			existing = append(existing, path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(existing) > 0 {
		return fmt.Errorf("nothing was written, name another folder: %s has %s", s.folder, strings.Join(existing, ", "))
	}
	if err := os.MkdirAll(filepath.Join(s.folder, "data"), 0o700); err != nil { // the players' accounts
		return err
	}
	for _, path := range paths {
		if err := writeNew(filepath.Join(s.folder, path), files[path], cmp.Or(modes[path], 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// writeNew writes a file, and keeps one that appeared meanwhile.
func writeNew(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

// quoteForShell returns a path as one word of a command, as sdk/create/create.mjs does it.
func quoteForShell(path string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-/~", r)
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// printSteps prints the commands that start the node and the game. Each block can be pasted.
func (s starter) printSteps(out io.Writer) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	enter := func(folder string) {
		if folder != "." {
			line("cd %s", quoteForShell(folder))
		}
	}
	line("# %s has a game, and a node for it. parlor.env has the keys.", s.folder)
	line("# The node, with Docker:")
	enter(s.folder)
	program := "./" + programFile
	if runtime.GOOS != "linux" {
		program = "parlor"
		line("# The image needs a program for Linux, from a clone of Parlor:")
		line("#   CGO_ENABLED=0 GOOS=linux go build -o %s ./cmd/parlor",
			quoteForShell(filepath.Join(s.folder, programFile)))
	}
	line("docker compose up -d --build")
	line("# or without it, with a redis-server of this machine:")
	enter(s.folder)
	line("redis-server redis.conf &")
	line("set -a; . ./parlor.env; set +a")
	line("%s serve", program)
	if s.server != "" {
		line("# The game's server, in another shell, unless Docker runs it:")
		enter(filepath.Join(s.folder, serverFolder))
		line("set -a; . ../server.env; set +a")
		for _, command := range serverCommands[s.server] {
			line("%s", command)
		}
	}
	line("# The game, in another shell. Open its address in a window, and in a private one:")
	enter(filepath.Join(s.folder, gameFolder))
	line("npm install")
	line("npm run dev")
}
