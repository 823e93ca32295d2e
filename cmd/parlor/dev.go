package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/parlor-games/parlor/cmd/parlor/referee"
	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/spf13/cobra"
)

func devCommand() *cobra.Command {
	opens := false
	c := &cobra.Command{
		Use: "dev", Args: cobra.NoArgs,
		Short: "Run a node for development: nothing to install, an example game, nothing stored",
		Long: "dev prints what can be clicked and pasted, and then a line for each event. When its port is taken, it\n" +
			"uses the next one. NO_COLOR turns colours off.",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := loadSettings(c, config.ModeDev)
			if err != nil {
				return err
			}
			if len(s.AdminKeys) == 0 {
				s.AdminKeys = []config.Secret{randomDevKey()}
			}
			if len(s.SigningKeys) == 0 {
				s.SigningKeys = []config.Secret{randomDevKey()}
			}
			log, _, storeErrors := newLog(s, c.ErrOrStderr())
			db, err := openStore(s)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }()
			required := requirements(s)
			required.MaxWait = s.StoreWait
			if err := db.CheckRequirements(c.Context(), required); err != nil {
				return ignoreStop(err) // stopped while it waited for the store
			}
			n, err := newNode(db, s, config.ModeDev, log, storeErrors)
			if err != nil {
				return err
			}
			if err := n.history.Start(c.Context()); err != nil { // money stands still until it is known
				return ignoreStop(err)
			}
			var origins []string
			if db.Kind() == redisdb.KindEmbedded {
				origins = []string{games.AnyOriginPattern}
			}
			example, err := n.seed(c.Context(), origins...)
			if err != nil {
				return err
			}
			removeKey, err := n.ensureServerKey(c.Context(), &example, devKeyFolder(s.RedisURL.Reveal()))
			if err != nil {
				return err
			}
			defer removeKey()
			tokens := make([]string, len(example.players))
			for i, p := range example.players {
				if tokens[i], err = n.auth.IssueAccessToken(c.Context(), example.game.ID, p.id, devTokenTTL); err != nil {
					return err
				}
			}
			n.apiServer.SetDemoGame(handlers.DemoGame{
				GameID: example.game.ID, EntryTokenID: example.stakeTokenID, Entry: seededEntry,
			})
			feed := newEventFeed(n.domains, example.game, c.OutOrStdout())
			return n.run(c.Context(), func(public string) companions {
				url := "http://" + dialAddress(public)
				console, err := n.devConsoleLink(c.Context(), url)
				if err != nil {
					console = "parlor console --url " + url
				}
				n.printExamples(c.OutOrStdout(), url, console, example, tokens)
				if opens {
					openBrowser(c.Context(), url+"/play")
				}
				return companions{
					feed.run,
					func(ctx context.Context) error {
						return referee.Run(ctx, referee.Options{NodeURL: url, ServerKey: example.serverKey, Log: log})
					},
				}
			})
		},
	}
	c.Flags().BoolVar(&opens, "open", false, "open the demo in the browser")
	return settingFlags(c)
}

// isOpenToOthers reports whether other machines may reach a listener at an address.
func isOpenToOthers(listen string) bool {
	host, _, _ := net.SplitHostPort(listen) // checked by config
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// seededEntry is the entry fee of the demo.
const seededEntry = "2.50"

// devTokenTTL is longer than the 15 minutes of other access tokens, so that the printed commands
// work all day.
const devTokenTTL = 24 * time.Hour

// randomDevKey returns a random key for one start. serve rejects such keys.
func randomDevKey() config.Secret {
	return config.Secret(config.DevKeyPrefix + rand.Text() + rand.Text())
}

// openBrowser shows a page in the browser of the desktop, if there is one.
func openBrowser(ctx context.Context, url string) {
	command := map[string][]string{
		"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"},
	}[runtime.GOOS]
	if command == nil {
		command = []string{cmp.Or(os.Getenv("BROWSER"), "xdg-open")}
	}
	c := exec.CommandContext(ctx, command[0], append(command[1:], url)...)
	if c.Start() == nil {
		go func() { _ = c.Wait() }()
	}
}

// style is how a terminal shows text. It is "" where colours are not wanted.
type style string

const (
	bold style = "1"
	dim  style = "2"
)

// hasColors reports whether an output is a terminal, and its user did not turn colours off
// (https://no-color.org).
func hasColors(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// styled returns a text in a style.
func styled(colors bool, s style, text string) string {
	if !colors {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// printExamples prints what can be clicked and pasted: at most 16 lines, each a comment or a
// complete command, so that all of them can be pasted at once.
func (n *node) printExamples(out io.Writer, url, console string, s seedResult, tokens []string) {
	colors := hasColors(out)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	link := func(name, address string) { line("#   %-8s %s", name, styled(colors, bold, address)) }
	if n.db.Kind() == redisdb.KindEmbedded {
		line("# Parlor runs. ALL DATA IS LOST when it ends; --redis-url keeps it. Click a link, or paste the commands:")
	} else {
		line("# Parlor runs, on the store of --redis-url. Click a link, or paste the commands:")
	}
	if isOpenToOthers(n.settings.ListenAddress) {
		line("# WARNING: everybody who reaches %s can play here, and pages of any website can call it; dev is not made "+
			"for that. --listen 127.0.0.1:8080 is for this machine only.", n.settings.ListenAddress)
	}
	link("play", url+"/play")
	link("console", console) // for one use
	link("docs", url+"/docs")
	link("API", url+"/openapi.yaml")
	link("SDK", `<script src="`+url+`/sdk/v1.js"></script>`)
	line("export URL=%s ADMIN_KEY=%s SERVER_KEY=%s  # of game %d, %q",
		url, n.settings.AdminKeys[0].Reveal(), s.serverKey, s.game.ID, s.game.Name)
	for i, p := range s.players {
		line("export %s=%s  # player %d", p.tokenVariable(), tokens[i], p.id)
	}
	ada := s.players[0]
	bearer := func(variable string) string { return `-H "Authorization: Bearer $` + variable + `"` }
	line(`curl -s $URL/api/v1/user-balance/token-balances %s`, bearer(ada.tokenVariable()))
	line(`curl -s $URL/api/v1/game-session/create %s --json '{"entryTokenId":%d,"roomEntry":2.5,"maxPlayers":2}'`,
		bearer(ada.tokenVariable()), s.stakeTokenID)
	line(`curl -s $URL/api/v1/leaderboards/%s/entries %s`, s.board, bearer(ada.tokenVariable()))
	line(`curl -s $URL/api/v1/tournaments/%d %s`, s.tournament.ID, bearer(ada.tokenVariable()))
	line(`curl -s $URL/api/v1/admin/audit %s`, bearer("ADMIN_KEY"))
	line("# Events, as they happen:")
}
