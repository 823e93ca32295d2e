package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

func initCommand() *cobra.Command {
	return &cobra.Command{
		Use: "init [folder]", Args: cobra.MaximumNArgs(1),
		Short: "Write the files between trying and running: settings, a compose file, a page with the SDK",
		Long: "init writes parlor.env with new secrets, compose.yaml with a node and a Redis, index.html with a first\n" +
			"game, and .gitignore. It overwrites nothing: when one of them exists, it writes none.",
		RunE: func(c *cobra.Command, args []string) error {
			folder := "."
			if len(args) == 1 {
				folder = args[0]
			}
			if err := writeStarterFiles(folder); err != nil {
				return err
			}
			out := c.OutOrStdout()
			for _, f := range starterFiles {
				_, _ = fmt.Fprintf(out, "%s\n", filepath.Join(folder, f.name))
			}
			_, _ = fmt.Fprintf(out, "# Next, in the folder %s:\ndocker compose up -d\n", folder)
			return nil
		},
	}
}

// starterFile is a file that init writes. {{secret NAME}} in its text is a secret, the same in all
// files.
type starterFile struct {
	name string
	mode fs.FileMode
	text string
}

var starterFiles = []starterFile{
	{"parlor.env", 0o600, `# Settings of parlor serve, with secrets: keep this file out of your repository.
# "parlor config env" lists all settings. The operator's key opens /api/v1/admin.
PARLOR_ADMIN_KEY={{secret admin}}
PARLOR_SIGNING_KEY={{secret signing}}
PARLOR_REDIS_URL=redis://:{{secret redis}}@redis:6379/0
PARLOR_LISTEN=0.0.0.0:8080
PARLOR_INTERNAL_LISTEN=127.0.0.1:9090
REDIS_PASSWORD={{secret redis}}
`},
	{"compose.yaml", 0o644, `# One node and one Redis that writes to disk before it answers. For TLS, several
# nodes and users of Redis with few rights, start from deploy/compose.yaml of the repository.
#
#   docker build -t parlor -f deploy/Dockerfile .     # once, in the repository of Parlor
#   docker compose up -d
name: my-game
services:
  node:
    image: parlor
    restart: unless-stopped
    env_file: parlor.env
    ports: ["127.0.0.1:8080:8080"]
    depends_on: [redis]
  redis:
    image: redis:7.2.16-bookworm
    restart: unless-stopped
    env_file: parlor.env
    command:
      - sh
      - -c
      - exec redis-server --appendonly yes --appendfsync always --maxmemory 1gb --maxmemory-policy noeviction
        --requirepass "$$REDIS_PASSWORD"
    volumes: ["data:/data"]
volumes:
  data:
`},
	{"index.html", 0o644, `<!doctype html>
<meta charset="utf-8">
<title>My game</title>
<button id="go">Click</button> <p id="log"></p>
<script src="http://localhost:8080/sdk/v1.js" crossorigin="anonymous"></script>
<script type="module">
  const parlor = Parlor.init({ gameId: 1 }), clicks = {};
  const room = await parlor.rooms.quick({ maxPlayers: 2 });
  const line = (user) => ` + "`${user.username}: ${clicks[user.id] ?? 0} `" + `;
  const show = () => log.replaceChildren(...room.participants.map(line));
  const count = (id, n) => { clicks[id] = n; show(); return { n }; };
  room.on("change", show);
  room.on("message", ({ from, payload }) => count(from, payload.n));
  const me = parlor.user.id;
  go.onclick = () => room.send("click", count(me, (clicks[me] ?? 0) + 1));
  show();
</script>
`},
	{".gitignore", 0o644, "parlor.env\n"},
}

const secretBytes = 32

// writeStarterFiles writes all files, or none where one of them exists.
func writeStarterFiles(folder string) error {
	var existing []string
	for _, f := range starterFiles {
		if _, err := os.Lstat(filepath.Join(folder, f.name)); err == nil {
			existing = append(existing, f.name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(existing) > 0 {
		return fmt.Errorf("nothing was written: %s has %s", folder, strings.Join(existing, ", "))
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var replacements []string
	for _, name := range []string{"admin", "signing", "redis"} {
		secret := make([]byte, secretBytes)
		_, _ = rand.Read(secret) // never fails
		replacements = append(replacements, "{{secret "+name+"}}", hex.EncodeToString(secret))
	}
	secrets := strings.NewReplacer(replacements...)
	for _, f := range starterFiles {
		// O_EXCL: a file that appeared meanwhile is kept.
		file, err := os.OpenFile(filepath.Join(folder, f.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
		if err != nil {
			return err
		}
		_, err = secrets.WriteString(file, f.text)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}
