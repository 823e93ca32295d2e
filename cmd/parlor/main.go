// Command parlor is a game session service: rooms with stakes, wallets, purchases and saves, over
// HTTP and WebSockets, with Redis as its only state.
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

	"github.com/parlor-games/parlor/internal/config"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// stopSignals are the signals that end what runs in good order. A closed terminal is one of them,
// unless nohup or the like made this process ignore it.
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// run executes a command line and returns the exit status: 0, 1 for an error, 78 for wrong
// settings.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use: "parlor", Short: "Game sessions with stakes, wallets, purchases and saves; Redis is the only state",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return config.SettingErrors{
			{Setting: "flags", Problem: fmt.Sprintf("%v; %s --help lists them", err, c.CommandPath())},
		}
	})
	root.AddCommand(devCommand(), serveCommand(), initCommand(), configCommand(), consoleCommand(), tokenCommand(),
		seedCommand(),
		auditCommand(), boardsCommand(), tournamentsCommand(), roomsCommand(), storeCommand(), ledgerCommand(),
		backupCommand(), restoreCommand(), tailCommand(),
		healthcheckCommand(), versionCommand())
	return exitStatus(root.ExecuteContext(ctx), stderr)
}

// errReported is returned by a command that has printed its error.
var errReported = errors.New("reported")

// exitStatus prints an error and returns the exit status.
func exitStatus(err error, stderr io.Writer) int {
	var wrongSettings config.SettingErrors
	var unmet redisdb.RequirementError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrongSettings), errors.As(err, &unmet):
		_, _ = fmt.Fprintln(stderr, err)
		return config.ExitStatus
	case !errors.Is(err, errReported):
		_, _ = fmt.Fprintf(stderr, "parlor: %v\n", err)
	}
	return 1
}
