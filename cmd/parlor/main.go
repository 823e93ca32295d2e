// Command parlor is a game session service: rooms with stakes, tournaments, leaderboards, wallets,
// purchases, saves and presence, over HTTP and WebSockets, with Redis as its only state.
//
// This package reads settings, wires the domains by hand (node.go), and starts and stops what runs.
// It decides nothing that a domain could decide.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// endWithTerminal makes a closed terminal end a command in good order, unless nohup or the like
// made this process ignore it. A node for production reloads instead: see serveCommand.
func endWithTerminal(c *cobra.Command, _ []string) {
	if c.Name() == "serve" || signal.Ignored(syscall.SIGHUP) {
		return
	}
	ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	c.SetContext(ctx)
}

// run executes a command line and returns the exit status: 0, 1 for an error or a verdict, 69
// for no verdict, 78 for wrong settings.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return exitStatus(root.ExecuteContext(ctx), stderr)
}

// newRootCommand returns the command with all others below it.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "parlor",
		Short:         "Rooms with stakes, tournaments, leaderboards, wallets, purchases, saves; Redis is the only state",
		SilenceErrors: true, SilenceUsage: true, PersistentPreRun: endWithTerminal,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return config.SettingErrors{
			{Setting: "flags", Problem: fmt.Sprintf("%v; %s --help lists them", err, c.CommandPath())},
		}
	})
	root.AddCommand(devCommand(), serveCommand(), initCommand(), configCommand(), consoleCommand(), tokenCommand(),
		seedCommand(), auditCommand(), boardsCommand(), tournamentsCommand(), roomsCommand(), storeCommand(), ledgerCommand(),
		backupCommand(), restoreCommand(), upgradeCommand(), tailCommand(), healthcheckCommand(), versionCommand())
	return root
}

// errReported is returned by a command that has printed its error.
var errReported = errors.New("reported")

// noVerdictError is the error of a check that could not be completed. Its exit status differs from
// 1, which means that the check failed.
type noVerdictError struct{ error }

func (e noVerdictError) Unwrap() error { return e.error }

// noVerdictStatus is EX_UNAVAILABLE of sysexits.h.
const noVerdictStatus = 69

// exitStatus prints an error and returns the exit status.
func exitStatus(err error, stderr io.Writer) int {
	var wrongSettings config.SettingErrors
	var unmet redisdb.RequirementError
	var noVerdict noVerdictError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrongSettings), errors.As(err, &unmet):
		_, _ = fmt.Fprintln(stderr, err)
		return config.ExitStatus
	case !errors.Is(err, errReported):
		_, _ = fmt.Fprintf(stderr, "parlor: %v\n", err)
	}
	if errors.As(err, &noVerdict) {
		return noVerdictStatus
	}
	return 1
}
