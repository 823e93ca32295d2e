// Command parlor is a game session service: rooms with stakes, wallets, purchases and saves, over HTTP and WebSockets,
// with Redis as its only state.
//
// This package reads settings, wires the domains by hand (node.go) and starts and ends what runs. It decides nothing that a
// domain could decide.
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run carries out a command line and answers the exit status: 0, 1 for what went wrong, 78 for wrong settings.
func run(ctx context.Context, args []string, out, problems io.Writer) int {
	root := &cobra.Command{
		Use: "parlor", Short: "Game sessions with stakes, wallets, purchases and saves; Redis is the only state",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(problems)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return config.SettingErrors{{Setting: "flags", Problem: fmt.Sprintf("%v; %s --help lists them", err, c.CommandPath())}}
	})
	root.AddCommand(devCommand(), serveCommand(), configCommand(), tokenCommand(), seedCommand(), auditCommand(), tailCommand(), healthcheckCommand(), versionCommand())
	return status(root.ExecuteContext(ctx), problems)
}

// errShown is an error that the command has told already.
var errShown = errors.New("shown")

func status(err error, problems io.Writer) int {
	var faults config.SettingErrors
	var unfit redisdb.RequirementError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &faults), errors.As(err, &unfit):
		_, _ = fmt.Fprintln(problems, err)
		return config.ExitStatus
	case !errors.Is(err, errShown):
		_, _ = fmt.Fprintf(problems, "parlor: %v\n", err)
	}
	return 1
}
